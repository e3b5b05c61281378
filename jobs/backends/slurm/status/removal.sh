cd "$folder" || exit 0
find . -mindepth 1 -type d ! -perm -u=rwx -exec chmod u+rwx {} \;
find . -mindepth 1 -delete
exit 0
