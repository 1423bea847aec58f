# Sourced after lib.sh: programs that take mpirun's place.

true_path=$PATH true_mpirun=$(command -v mpirun)
# as_mpirun DIR: makes the script on standard input the mpirun of what follows, until
# PATH=$true_path.
as_mpirun() {
    mkdir "$1"
    { echo '#!/bin/sh' && cat; } >"$1/mpirun"
    chmod +x "$1/mpirun"
    PATH=$1:$true_path
}
# as_asking_mpirun DIR: one that prints its ranks and its host file, and ends as a job that was
# stopped.
as_asking_mpirun() {
    as_mpirun "$1" <<'END'
while [ $# -gt 0 ]; do
    case $1 in
    -np) echo "np $2" ;;
    --hostfile) cat "$2" ;;
    esac
    shift
done
exit 75
END
}
