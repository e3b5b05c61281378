# shellcheck shell=sh
[ -e "$1" ] || echo "unseen $SLURMD_NODENAME"
[ ! -e "$1" ] || [ -w "$1" ] || echo "locked $SLURMD_NODENAME"
[ "$(id -un)" = "$2" ] || echo "stranger $SLURMD_NODENAME"
"$3" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || echo "old $SLURMD_NODENAME"
echo "tried $SLURMD_NODENAME"
