// @ts-check
/**
 * Before the first paint: the theme and the navigation's width, as this browser remembers them.
 *
 * A classic script on purpose: a module would run after the page has been drawn once in the wrong colours.
 * What this browser was told wins over what the account says (data-theme); "auto" follows the system.
 */
(() => {
  const root = document.documentElement;
  /** @type {(key: string) => string | null} */
  const remembered = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage may be forbidden; then nothing is remembered
    }
  };
  const theme = remembered("console.theme") ?? root.dataset.theme ?? "auto";
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = theme;
  root.dataset.bsTheme = theme === "light" || theme === "dark" ? theme : system;
  if (remembered("console.nav") === "slim") root.dataset.nav = "slim";
})();
