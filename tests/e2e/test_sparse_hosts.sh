#!/bin/sh
# Fails if sparse rows are summed in the order of hosts, are of another step or place, a host starts
# without state, or rounding depends on who has which replicas. On two and three hosts the rows that
# a batch touches go between hosts, and the bits are those of one process: with rules that touch the
# rows of a batch alone and with those that update all, with clipping, with an embedding and a
# linear path; hosts with other numbers of workers, and one with the bank alone; state goes to hosts
# that resume and comes back in a checkpoint. Fewer bytes on the link than whole gradients, and
# again with a rounded wire. Tables for which no host has memory.
# seconds: 100
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/corners.sh"
. "$root/tests/e2e/netns.sh"
hosts_up 3
rows=$tmp/rows.svm
make_sparse "$rows" 6000 2000
table=$tmp/table.csv
make_shops "$table" 2000 900
svm="data.train=$rows data.eval_fraction=0.1 eval.steps=-1 run.replicas=5 model.kind=linear
    train.batch=61 train.epochs=1 export.best=no export.latest=no"
wide="data.train=$table data.label=price data.eval_fraction=0.1 eval.steps=-1 run.replicas=5
    model.task=regress model.hidden=16 model.embedding=4 model.wide=yes data.hash_bits=10
    train.batch=60 train.epochs=2 export.best=no export.latest=no"

# one NAME KEYS...: in one process. on NP NAME KEYS...: on the hosts.
one() {
    name=$1
    shift
    job 1 run.dir="$tmp/$name" "$@" 2>"$tmp/err" || fail_with "$tmp/err" "$name"
}
on() {
    ranks=$1 name=$2
    shift 2
    hosts_job "$ranks" "$dtrain" run.dir="$tmp/$name" "$@" 2>"$tmp/$name.err" ||
        fail_with "$tmp/$name.err" "$name"
    ! grep -q 'sends the whole gradient' "$tmp/$name.err" || fail "$name: gradients are whole"
}
same() { check_eq "params_crc32c of $1" "$(crc "$tmp/$1")" "$(crc "$tmp/$2")"; }
# alike NAME KEYS...: two hosts with three workers, and three with five, have the bits of one
# process.
alike() {
    what=$1
    shift
    one "$what" "$@"
    hosts_slots 2 2
    on 4 "$what-2" "$@"
    same "$what-2" "$what"
    hosts_slots 3 1 2
    on 6 "$what-3" "$@"
    same "$what-3" "$what"
}

alike adagrad $svm train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05
alike momentum $svm train.lr=0.1
alike wide $wide train.optimizer=adagrad train.lr=0.1 train.wide_optimizer=ftrl train.wide_lr=0.3 \
    train.l1=3
alike encoded $wide train.optimizer=adagrad train.lr=0.1 data.encode=ple data.encode_bins=5 \
    model.embedding=0
alike q8 $svm train.optimizer=adagrad train.lr=0.1 train.clip_norm=0.05 train.wire=q8 train.groups=2
alike bf16 $wide train.optimizer=adam train.lr=0.01 train.wire=bf16 train.groups=3 train.lazy=yes
hosts_slots 1 2
on 3 lazy-2 $svm train.optimizer=adam train.lazy=yes
one lazy $svm train.optimizer=adam train.lazy=yes
same lazy-2 lazy
# Where local steps begin, tables are whole from there on, for evaluations as well.
after="$svm eval.steps=4 train.local_steps=2 train.local_after=4 train.groups=2 train.max_steps=8"
on 3 after-2 $after
one after $after
same after-2 after
# Slices of a batch.
slices="$svm train.batch=0 run.replicas=1 train.epochs=3 train.optimizer=adagrad train.lr=0.1"
hosts_slots 1 1
on 2 slices-2 $slices
one slices $slices
same slices-2 slices

# From hosts to one process, to other hosts: the state is in the checkpoint, and at each host that
# goes on.
deep="$wide train.optimizer=adam train.lr=0.01 train.lazy=yes train.clip_norm=0.5"
one whole $deep
hosts_slots 2 1 1
on 4 half $deep train.max_steps=17
one half $deep train.max_steps=33
hosts_slots 2 2
on 4 half $deep
same half whole
# With the errors of rounded sums and updates.
rounded="$wide train.lr=0.05 train.wire=q8 train.groups=2"
one round-whole $rounded
hosts_slots 2 2
on 4 round-half $rounded train.max_steps=17
hosts_slots 3 1 2
on 6 round-half $rounded train.max_steps=33
one round-half $rounded
same round-half round-whole

# Hosts whose shared memory has no room for the table (18 MB, and as much of state): rows are at
# owners, and a host has those that it reads.
large="$wide data.hash_bits=18 model.embedding=16 train.optimizer=adagrad train.lr=0.05
    train.max_steps=9"
one large $large
hosts_slots 3 2 2
for i in 1 2 3; do on_host $i mount -o remount,size=8m /dev/shm || fail "/dev/shm of host $i"; done
UCX_TLS=tcp,self on 7 large-3 $large # MPICH's own memory of a host would take as much
! grep -q 'without shared memory' "$tmp/large-3.err" ||
    fail 'a host had no room for the rows that it reads'
same large-3 large
for i in 1 2 3; do on_host $i mount -o remount,size=50% /dev/shm; done

# Each host has two workers; start and end cost the same both ways.
hosts_slots 3 2
for way in exchange=auto exchange=reduce wire=bf16; do
    before=$(host_sent 2)
    hosts_job 5 "$dtrain" run.dir="$tmp/bytes-$way" $svm train.$way train.optimizer=adagrad \
        train.batch=20 2>"$tmp/err" || fail_with "$tmp/err" "$way"
    eval "sent_${way#*=}=$(($(host_sent 2) - before))"
done
check_le 'bytes of touched rows, of those of whole gradients' \
    "$(echo "$sent_auto $sent_reduce" | awk '{print $1 / $2}')" 0.3
# Sums go to owners rounded; weights come back in floats, for their rows are read at once.
check_le 'bytes with rounded sums of rows, of those in floats' \
    "$(echo "$sent_bf16 $sent_auto" | awk '{print $1 / $2}')" 0.85
