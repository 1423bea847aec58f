#!/bin/sh
# Fails if the cost model of the exchange lacks a term or counts one twice: it must predict what it
# is fitted to, and never less than the wire takes. The program that measures for it must do a real
# exchange.
. "$(dirname "$0")/lib.sh"
make -s "$BUILD/scripts/bench/exchange_speed" || fail 'exchange_speed'

# Measured on two cores: net, bit/s, hosts, ms a step, and train.wire.
cat >"$tmp/measured" <<END
784-512-256-10 200e6 2 90.01
784-512-256-10 200e6 4 138
784-512-256-10 200e6 8 161.2
784-512-256-10 200e6 16 172.9
784-32-10 1e9 2 3.77
784-32-10 1e9 4 3.605
784-32-10 1e9 8 5.771
784-32-10 1e9 16 13.97
784-512-256-10 1e9 2 19.03
784-512-256-10 1e9 4 31.17
784-512-256-10 1e9 8 34.88
784-512-256-10 1e9 16 69.81
784-512-256-10 1e9 2 10.6 bf16
784-512-256-10 1e9 2 7.0 q8
784-512-256-10 200e6 2 45 bf16
784-512-256-10 200e6 2 22.4 q8
END
model() { awk -f scripts/bench/cost_model.awk -v cores=2 "$@" >"$tmp/model" || fail 'the model'; }
worst() {
    awk '$1 == "predicted" {
        d = log($6 / $5)
        if (d * d > w) w = d * d
    }
    END { print sqrt(w) }' "$tmp/model"
}
model "$tmp/measured"
check_eq cases "$(grep -c '^predicted' "$tmp/model")" 16
check_le 'farthest from what it is fitted to' "$(worst)" 0.2
check_eq 'predicted below the wire' "$(awk '$1 == "predicted" && $6 < $7' "$tmp/model" | wc -l)" 0
check_eq projections "$(grep -c '^project' "$tmp/model")" 378
# step WIRE: of 1e9 parameters, which the links' bytes decide, on two hosts at 1 Gbit/s.
step() {
    awk -v wire="$1" '
        $1 == "project" && $2 == "1G" && $3 == 1e9 && $4 == 2 && $5 == 1 && $7 == wire { print $6 }
    ' "$tmp/model"
}
part=$(echo "$(step q8) $(step f32)" | awk '{print $1 / $2}')
check_ge 'part of the time that q8 takes' "$part" 0.25
check_le 'part of the time that q8 takes' "$part" 0.27
echo '784-32-10 1e9 2 3.77 q4' |
    awk -f scripts/bench/cost_model.awk -v cores=2 >"$tmp/out" 2>&1 &&
    fail 'a wire of no kind is taken'

# Two replicas: every order of the sum gives the same.
sum() {
    mpirun --oversubscribe --timeout $limit -np 3 "$BUILD/scripts/bench/exchange_speed" \
        20-30-4 3 2 "$1" | sed 's/.* sum //'
}
want=$(sum auto)
check_eq 'sum of reduce' "$(sum reduce)" "$want"
check_ge 'weights that q8 moves' "$(sum q8 | awk '{print ($1 < 0 ? -$1 : $1)}')" 1e-6
