#!/bin/sh
# Fails if the command line misreads its words, or hides an error. Help, version, options, wrong
# arguments, OpenBLAS's settings.
. "$(dirname "$0")/lib.sh"

# errors CODE TEXT ARGS...: dtrain alone ends with CODE and one error line that holds TEXT.
errors() {
    code=$1 text=$2
    shift 2
    "$dtrain" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    check_eq "exit code of '$*'" $? "$code"
    check_eq 'error lines' "$(grep -c '^dtrain: error:' "$tmp/err")" 1
    grep -qF -e "$text" "$tmp/err" || fail "'$(cat "$tmp/err")' does not hold '$text'"
}

commands='train eval predict shard inspect options'
"$dtrain" --help >"$tmp/help" || fail '--help'
for command in $commands; do
    expect_line "$tmp/help" "^  $command " "--help lacks $command"
    "$dtrain" "$command" --help | grep -q "^dtrain $command" || fail "$command --help"
done
"$dtrain" --version >"$tmp/version" || fail '--version'
for library in dtrain MPI OpenBLAS HDF5 jansson zlib; do
    expect_line "$tmp/version" "^$library .*[0-9]\.[0-9]" "--version lacks $library"
done
"$dtrain" options | grep -q '^train.lr .*0.01' || fail options
"$dtrain" options --markdown | grep -q '^| `train.lr` | `0.01` |' || fail 'options --markdown'

errors 2 'expected a section or a key' options --foo
"$dtrain" help train.lr | grep -q '^train.lr = 0.01' &&
    "$dtrain" --help eval | grep -q '^dtrain eval' || fail 'help of a key, --help of a command'
errors 2 'unknown key; did you mean train.lr' --help train.lrr
errors 2 'nothing: no such command' help nothing
errors 2 'unknown key; did you mean train.lr' options train.lrr
errors 2 'expected a configuration file'
errors 2 'foo: no such file, and no command' foo
errors 2 'data.train: expected data.train=VALUE' train data.train
errors 2 'data.data.train: unknown key; did you mean data.train' train data.data.train=x
errors 2 'trian: no such file, and no command of this name; did you mean train?' trian
errors 2 "launch: expected CONFIG.ini or section.key=value after mpirun's options; this is no such \
file: key=value" launch -np 3 key=value
printf 'a,b,c\n1,2,3\n' >"$tmp/my.csv"
errors 2 'my.csv: a table, not a configuration: `dtrain inspect ' "$tmp/my.csv"
errors 2 'run.dir=runs/first data.label=a` trains' "$tmp/my.csv" data.label=a
printf '1 1:2 3:4\n' >"$tmp/rows.svm"
errors 1 'no table by its name (.csv' inspect "$tmp/rows.svm"
"$dtrain" inspect data.decimals=1 "$tmp/my.csv" 2>/dev/null &&
    fail 'inspect takes a key that is none'
"$dtrain" inspect data.ignore=a data.missing=mean "$tmp/my.csv" >/dev/null ||
    fail 'inspect does not take a key of data'
"$dtrain" inspect data.categories=b,d "$tmp/my.csv" >"$tmp/out" ||
    fail 'inspect insists on a column that is not there'
expect_line "$tmp/out" "data.categories: no column is named 'd'" \
    'inspect does not say that a column is not there'
check_eq 'what b is' "$(awk '$1 == "b" {print $3}' "$tmp/out")" category
# A limit of file sizes (ulimit -f) is an error, as a full disk is, and not the end by a signal.
awk 'BEGIN {for (i = 0; i < 5000; i++) print i "," i % 2}' >"$tmp/many.csv"
(ulimit -f 16 && errors 1 'File too large' shard "$tmp/limited" 1 data.train="$tmp/many.csv") ||
    exit 1
errors 2 '--foo: not a flag' --foo
errors 2 '--log=loud: not a flag' --log=loud
errors 2 'model.hidden=1: expected data.KEY=VALUE' inspect "$tmp/my.csv" model.hidden=1
errors 2 'inspect' inspect
"$dtrain" options >/dev/full 2>"$tmp/err"
check_eq 'exit code with a full disk' $? 1
expect_line "$tmp/err" '^dtrain: error: standard output' 'a full disk goes unnoticed'

check_eq 'a row of the table of options' \
    "$("$dtrain" options run.threads --markdown | tail -n 1 | cut -d'|' -f1-6)" \
    '| `run.threads` | `1` | integer 1 to 1024 | must stay the same | BLAS threads per rank '

# Processes that do not know of each other.
SLURM_NTASKS=3 errors 2 "srun --mpi=$pmi" train.batch=1
for told in PMI_SIZE OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS; do
    (export PMI_RANK=0 $told=3 && errors 2 "3 ranks were started ($told)" train.batch=1) || exit 1
done

# The whole job says it once.
printf '[train]\nlrr = 1\n' >"$tmp/bad.ini"
expect_error 2 "bad.ini:2: train.lrr: unknown key; did you mean train.lr?" 3 "$tmp/bad.ini"
expect_error 2 'train.batch=abc: expected an integer from 0 to 1000000000' 3 train.batch=abc
expect_error 2 'expected a configuration file' 3

# The option comes before the environment, and that before the table; a configuration from a pipe
# can be read but once.
kernel() {
    what=$1 want=$2
    shift 2
    rm -rf "$tmp/kernel"
    "$dtrain" "$@" run.dir="$tmp/kernel" train.max_steps=0 2>"$tmp/err" ||
        fail_with "$tmp/err" "$what"
    check_eq "kernel by $what" "$(record "$tmp/kernel" start kernel)" "$want"
}
OPENBLAS_CORETYPE=Nehalem kernel 'the option' Prescott "$recipes/penguins.ini" run.kernel=Prescott
OPENBLAS_CORETYPE=Prescott kernel 'the environment' Prescott "$recipes/penguins.ini" run.kernel=env
{ cat "$recipes/penguins.ini"; printf '[run]\nkernel = Prescott\nseed = 77\n'; } |
    kernel 'a file from a pipe' Prescott /dev/stdin
grep -qx 'seed *= *77' "$tmp/kernel/config.ini" || fail 'a configuration from a pipe is lost'
expect_error 2 'run.kernel=Nehalen: expected a kernel' 2 "$recipes/penguins.ini" \
    run.dir="$tmp/refused" run.kernel=Nehalen
