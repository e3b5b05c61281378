_job_console() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=
  COMPREPLY=()
  case ${COMP_WORDS[1]}:$previous in
    # VALUES
  esac
  if [ -z "$words" ]; then
    if [ "$COMP_CWORD" -eq 1 ]; then
      words=COMMANDS
    elif [[ $current == -* ]]; then
      case ${COMP_WORDS[1]} in
        # OPTIONS
      esac
    fi
  fi
  # shellcheck disable=SC2207 # each is one word
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _job_console job-console
