#!/bin/sh
# Fails if a bank needs the whole model in memory, for its books, a save, a resume, an evaluation or
# an export. Four hosts, each with memory for less than half of a model's weights and optimizer
# state: split layers train, save, resume, evaluate and export there, with the bits of a host that
# has memory for all. Needs control groups, and 8 GB of disk.
# seconds: 900
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 4
groups=/sys/fs/cgroup/memory limit_file=memory.limit_in_bytes
[ -d $groups ] || groups=/sys/fs/cgroup limit_file=memory.max
for i in 1 2 3 4; do
    group=$groups/$(host_name $i)
    mkdir "$group" 2>/dev/null && at_exit "rmdir $group" && [ -w "$group/$limit_file" ] ||
        skip 'memory cannot be limited here'
done
cat >"$tmp/in_group" <<END
#!/bin/sh
echo \$\$ >$groups/\$(hostname)/cgroup.procs && exec "\$@"
END
chmod +x "$tmp/in_group"
# limit_hosts BYTES
limit_hosts() {
    for i in 1 2 3 4; do echo "$1" >"$groups/$(host_name $i)/$limit_file" || fail 'a limit'; done
}

awk 'BEGIN {
    srand(7)
    for (n = 0; n < 600; n++) {
        line = class = int(rand() * 4)
        for (i = 0; i < 32; i++) line = line "," int(100 * (rand() + (i % 4 == class)))
        print line
    }
}' >"$tmp/rows.csv"
width=${WIDTH:-9000}
params=$((32 * width + width + width * width + width + width * 4 + 4))
state=$((params * 12))
keys="data.train=$tmp/rows.csv data.label=0 data.scale=0.01 data.eval_fraction=0.1 train.batch=32
    run.replicas=4 train.optimizer=adam train.lr=0.0001 run.keep=1 export.latest=no
    run.stall_secs=300"
[ "$(df -Pk "$tmp" | awk 'END {print $4}')" -gt $((state / 1024 * 8)) ] || skip 'needs 8 GB of disk'
layers="dense $width relu, dense $width relu split"
limit=$((300 * PATIENCE))

# on NP NAME KEYS...: under the limit.
on() {
    ranks=$1 name=$2
    shift 2
    hosts_job "$ranks" "$tmp/in_group" "$dtrain" $keys "run.dir=$tmp/$name" "$@" 2>"$tmp/$name.err"
}
limit_hosts $((state * 45 / 100))
hosts_slots 2 1 1 1
on 5 limited "model.layers=$layers" train.max_steps=4 run.checkpoint_steps=2 eval.steps=2 ||
    fail_with "$tmp/limited.err" 'a run'
on 5 limited "model.layers=$layers" train.max_steps=6 run.checkpoint_steps=2 eval.steps=2 ||
    fail_with "$tmp/limited.err" 'a resume'
on 5 whole "model.layers=$(echo "$layers" | sed 's/ split//')" train.max_steps=4 &&
    fail 'the layer fits, unsplit'
check_eq 'error lines' "$(grep -c 'dtrain: error:' "$tmp/whole.err")" 1
grep -q "error: .*model.split=$((width * width))" "$tmp/whole.err" ||
    fail_with "$tmp/whole.err" 'no word of model.split'
for i in 1 2 3 4; do
    used=$(cat "$groups/$(host_name $i)/memory.max_usage_in_bytes" 2>/dev/null)
    echo "host $i: $used of $((state * 45 / 100))"
done

limit_hosts $((1 << 40))
job 1 $keys "run.dir=$tmp/one" "model.layers=$layers" train.max_steps=6 eval.steps=2 \
    2>"$tmp/one.err" || fail_with "$tmp/one.err" 'one process'
check_eq 'bits under the limit' "$(crc "$tmp/limited")" "$(crc "$tmp/one")"
check_eq 'loss of the evaluation' "$(record "$tmp/limited" eval loss)" \
    "$(record "$tmp/one" eval loss)"
for name in limited one; do
    "$dtrain" eval "$tmp/$name/export/best" "data.eval=$tmp/rows.csv" eval.json=yes \
        >"$tmp/$name.eval" || fail "eval of $name"
done
check_eq 'loss of the exported model' "$(json loss <"$tmp/limited.eval")" \
    "$(json loss <"$tmp/one.eval")"
