#!/bin/sh
# What the figures were measured on, as lines of $SAMPLES.
fact() { printf 'machine\t%s\t%s\n' "$1" "$2" >>"$SAMPLES"; }
fact date "$(date -u '+%Y-%m-%d %H:%M UTC')"
fact cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
fact cores "$(nproc)"
fact load "$(cut -d ' ' -f 1 /proc/loadavg)"
fact kernel "$(uname -sr)"
fact versions "$(./dtrain --version | tr -s ' ' | paste -sd ';')"
fact 'sgemm kernel' "$PEAK_KERNEL, the fastest here"
[ -z "$PYTHON" ] || fact torch "$("$PYTHON" -c 'import torch; print(torch.__version__)')"
fact settings "$ROUNDS turns of $SECS s, $SEEDS seeds"
