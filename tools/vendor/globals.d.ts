/** What other scripts of the page leave on the global object. */

interface DjangoCatalogue {
  gettext?(text: string): string;
  ngettext?(one: string, many: string, count: number): string;
}

declare var django: DjangoCatalogue | undefined;
