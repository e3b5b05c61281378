# shellcheck shell=sh
[ -d "$1" ] && [ -w "$1" ] || echo "closed $SLURMD_NODENAME"
[ "$(id -un)" = "$2" ] || echo "stranger $SLURMD_NODENAME"
if "$3" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  "$3" -I -S -c "$4" here "$5" || echo "unreached $SLURMD_NODENAME"
else
  echo "without $SLURMD_NODENAME"
fi
echo "tried $SLURMD_NODENAME"
