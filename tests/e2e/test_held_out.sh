#!/bin/sh
# Fails if a group is on two sides, held-out rows differ at another number of ranks, in a stream,
# after a resume or from an old configuration, or the test set is measured early, twice or by
# another model. The score must be that of new groups and days.
# seconds: 60
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
# table FILE SEED GROUPS ROWS: groups of ROWS rows. Features name the group; its class is its own.
table() {
    awk -v seed="$2" -v groups="$3" -v rows="$4" 'BEGIN {
        srand(seed)
        print "group,day,a,b,c,y"
        for (g = 0; g < groups; g++) {
            a = 2 * rand() - 1; b = 2 * rand() - 1; c = 2 * rand() - 1; own = rand() < 0.5
            for (i = 0; i < rows; i++)
                printf "g%d,%d,%.4g,%.4g,%.4g,%s\n", g + 1000 * seed, g, a + rand() / 50,
                    b + rand() / 50, c + rand() / 50, own ? "yes" : "no"
        }
    }' >"$1"
}
table known.csv 1 60 12
table new.csv 2 200 3
common='run.preset=none train.optimizer=adam train.lr=0.01 model.hidden=32 train.batch=64
    eval.steps=100'
# run NAME NP KEY...
run() {
    name=$1 np=$2
    shift 2
    job "$np" run.dir="$name" data.train=known.csv $common train.epochs=60 run.replicas=2 \
        "$@" 2>"err.$name" || fail_with "err.$name" "training $name"
}
accuracy() { "$dtrain" -q eval "$@" | json accuracy; }

# ---- the score of new groups and days ------------------------------------------------------------
run random 1 data.ignore=group,day data.eval_fraction=0.2
run group 1 data.ignore=day data.group=group data.eval_fraction=0.2 data.test_fraction=0.2
run time 1 data.ignore=group,day data.time=day data.gap=2s data.eval_fraction=0.2
for name in random group time; do
    held=$(accuracy "$name") new=$(accuracy "$name" data.eval=new.csv)
    echo "accuracy of $name: $held held out, $new of new groups"
    awk -v name="$name" -v held="$held" -v new="$new" '
        BEGIN { exit name == "random" ? !(held > new + 0.3) : !(held < new + 0.25) }' ||
        fail "$name: $held, $new"
done

# ---- the test ------------------------------------------------------------------------------------
best=$(cd group/export/best && ls | sort -n | tail -n 1)
check_eq 'tests of a run' "$(grep -c '"set":"test"' group/metrics.jsonl)" 1
check_eq 'the tested model' \
    "$(sed -n 's/.*"set":"test","step":\([0-9]*\),.*/\1/p' group/metrics.jsonl)" "$best"
expect_line err.group "this model on the set 'test': loss" 'the end'
# same_test NAME: `dtrain eval` and the run's record have the same loss of the test rows.
same_test() {
    loss=$(sed -n 's/.*"set":"test".*"loss":\([^,]*\),"acc.*/\1/p' "$1/metrics.jsonl")
    check_eq "the loss of the test of $1, by eval" \
        "$("$dtrain" -q eval "$1" | sed 's/.*"test":{[^}]*"loss":\([^,]*\),.*/\1/')" "$loss"
}
same_test group
run alone 1 data.ignore=day data.group=group data.test_fraction=0.2
"$dtrain" -q eval alone | grep -q '"sets":{"test"' || fail 'a test without rows held out'
run preset 1 data.ignore=group,day data.test_fraction=0.2 data.eval_fraction=0.2 run.preset=table \
    train.epochs=3
same_test preset

# ---- the same rows -------------------------------------------------------------------------------
digits() { sed -n '/"kind":"eval"/s/,"secs".*//p' "$1/metrics.jsonl"; }
keys='data.ignore=day data.group=group data.time=day data.gap=2s data.eval_fraction=0.2
    data.test_fraction=0.1 train.epochs=6'
for np in 1 2 3 5; do
    run "np$np" "$np" $keys
    check_eq "evaluations at np $np" "$(digits "np$np" | cksum)" "$(digits np1 | cksum)"
done
run again 1 $keys train.epochs=3
run again 3 $keys
check_eq 'the last evaluations after a resume' "$(digits again | tail -n 2 | cksum)" \
    "$(digits np1 | tail -n 2 | cksum)"
# held NAME: the features of its held-out rows, in the order of the file.
held() {
    "$dtrain" -q predict "$1" predict.held_out=yes predict.features=yes | sed 's/.*"features"//'
}
awk -F, 'BEGIN { OFS = "," }
    NR == 1 { print; next }
    { for (i = 0; i < 60; i++) print $1 "." i, $2, $3 + i, $4, $5, $6 }' known.csv >large.csv
for name in whole stream; do
    memory=64
    [ $name = whole ] || memory=1
    run $name 2 data.train=large.csv data.ignore=day data.group=group data.eval_fraction=0.1 \
        train.max_steps=3 data.memory_mb=$memory
done
check_eq 'held-out rows of a stream' "$(held stream | cksum)" "$(held whole | cksum)"

# ---- old runs keep their rows --------------------------------------------------------------------
run no 1 data.ignore=group,day data.eval_fraction=0.2 data.stratify=no train.epochs=1
run yes 1 data.ignore=group,day data.eval_fraction=0.2 train.epochs=1
sed '/^stratify/d; s/^dir = .*/dir = old/' no/config.ini >old.ini
"$dtrain" -q old.ini || fail 'an old configuration'
check_eq 'held-out rows of an old configuration' "$(held old | cksum)" "$(held no | cksum)"
[ "$(held yes | cksum)" != "$(held no | cksum)" ] || fail 'stratified rows are the random ones'
"$dtrain" -q no/config.ini run.dir=no train.epochs=2 || fail 'a resume'
"$dtrain" data.train=known.csv data.ignore=group,day data.eval_fraction=0.2 run.dir=no $common \
    train.epochs=3 2>err || fail_with err 'a resume without the key'

# ---- folds ---------------------------------------------------------------------------------------
for fold in 0 1 2; do
    run "fold$fold" 1 data.ignore=day data.group=group data.folds=3 data.fold=$fold train.epochs=1
    "$dtrain" -q predict "fold$fold" predict.held_out=yes predict.features=yes
done | sed 's/.*"features"//' | sort | uniq -c | awk '{n[$1]++} END {print n[1], length(n)}' >folds
check_eq 'rows in one fold' "$(cat folds)" '720 1'
