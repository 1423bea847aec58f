#!/bin/sh
# Tables of Debian's packages: test loss and CPU seconds of the defaults, of boosted trees,
# linear models and a perceptron (scripts/bench/tables.py). PEERS: a file that keeps what these came
# to.
. "$(dirname "$0")/lib.sh"
case=
for python in ${PYTHON:-} python3 /usr/bin/python3; do
    "$python" -c 'import numpy, scipy, sklearn, xgboost' 2>/dev/null && break
    python=
done
[ "$python" ] || { remark 'python3-sklearn or python3-xgboost is not installed'; exit; }
set -- "$OUT"
[ -z "${QUICK:-}" ] || set -- "$OUT" --splits 1 --tables concrete,churn
[ -z "${PEERS:-}" ] || set -- "$@" --peers "$PEERS"
"$python" "$bench/tables.py" "$@" --dtrain "$dtrain"
