boxed() { # PLACE: set the options of srun by which a role runs in its image
  local image=${images[$1]} seats=()
  [ -n "$image" ] || return 0
  seated
  case $engine in
    pyxis)
      seats=("$folder:$folder" "${seats[@]/%:rw/}")
      box=("--container-image=$image" "--container-mounts=$(IFS=,; echo "${seats[*]}")")
      ;;
    oci) box=("--container=$image") SLURMD_NODENAME=${node_of[$1.0]} ;;
  esac
}
