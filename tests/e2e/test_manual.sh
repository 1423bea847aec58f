#!/bin/sh
# Fails if roff complains of a manual page, a page lacks a key or a command, the JSON Schema refuses
# a recipe or takes a wrong one, or a completion does not complete. All are made of the tables of
# commands and options.
# seconds: 30
# waits
. "$(dirname "$0")/lib.sh"

# ---- manual pages --------------------------------------------------------------------------------
"$dtrain" help --man >"$tmp/dtrain.1" || fail 'help --man'
"$dtrain" options --man >"$tmp/dtrain-config.5" || fail 'options --man'
if command -v man >/dev/null; then
    for page in dtrain.1 dtrain-config.5; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$tmp/$page" \
            >"$tmp/$page.txt" 2>"$tmp/err" || fail "$page"
        [ ! -s "$tmp/err" ] || fail_with "$tmp/err" "$page: roff complains"
        check_le "widest line of $page" "$(LC_ALL=C.UTF-8 wc -L <"$tmp/$page.txt")" 80
    done
    "$dtrain" options | sed -n 's/^\([a-z]*\.[a-z0-9_]*\) .*/\1/p' >"$tmp/keys"
    check_ge keys "$(wc -l <"$tmp/keys")" 50
    while read -r key; do
        grep -qE "^ *$key( |\$)" "$tmp/dtrain-config.5.txt" || fail "dtrain-config(5) lacks $key"
    done <"$tmp/keys"
    grep -qE '^ *train.overlap=yes +e \. ' "$tmp/dtrain-config.5.txt" ||
        fail 'overlap (e) goes with async (a)'
    grep -qE '^ *eval.dedicated=yes +[a-z] \+ ' "$tmp/dtrain-config.5.txt" ||
        fail 'an evaluator does not go with async'
fi
# Each command is explained, in lines of at most 80 characters.
"$dtrain" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' >"$tmp/commands"
check_ge commands "$(wc -l <"$tmp/commands")" 14
while read -r command; do
    "$dtrain" help "$command" | sed 1,4d >"$tmp/help"
    [ -s "$tmp/help" ] || fail "help $command explains nothing"
    check_le "widest line of help $command" "$(wc -L <"$tmp/help")" 80
done <"$tmp/commands"
# Letters are above their columns: the row after the last setting starts where its marks do.
letters() { grep -nE '^ {20,}a b c' "$tmp/dtrain-config.5" | tail -n 1; }
check_eq 'columns of the combinations' \
    "$(letters | sed 's/^[0-9]*://; s/a .*//' | tr -d '\n' | wc -c)" 33
check_eq 'sections' "$(sed -n 's/^\.SH SECTION \[\(.*\)\]$/\1/p' "$tmp/dtrain-config.5")" \
    "$("$dtrain" options | sed -n 's/^\([a-z]*\)\.[a-z0-9_]* .*/\1/p' | uniq)"
check_eq 'sections without a word' "$(awk '
    /^\.SH SECTION/ {getline; n += !/^[A-Z]/}
    END {print n + 0}' "$tmp/dtrain-config.5")" 0
"$dtrain" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\)  .*/\1/p' >"$tmp/commands"
check_ge commands "$(wc -l <"$tmp/commands")" 8
while read -r command; do
    expect_line "$tmp/dtrain.1" "^\.B $command\$" "dtrain(1) lacks $command"
    "$dtrain" help "$command" >"$tmp/help"
    expect_line "$tmp/help" "^dtrain $command" "help $command"
    [ -z "$(awk 'length > 80 && NR > 3' "$tmp/help")" ] || fail "help $command: a line beyond 80"
    check_eq "ends of the last line of help $command" "$(tail -c 1 "$tmp/help" | wc -l)" 1
done <"$tmp/commands"
"$dtrain" options train.lr | grep -q '^train.lr = 0.01$' || fail 'options train.lr'
check_eq 'sections of options eval' \
    "$("$dtrain" options eval | sed -n 's/^\([a-z]*\)\..*/\1/p' | sort -u)" eval

# ---- schema --------------------------------------------------------------------------------------
"$dtrain" options --json-schema >"$tmp/schema.json" || fail 'options --json-schema'
if has_python jsonschema; then
    /usr/bin/python3 tests/e2e/schema.py "$tmp/schema.json" scripts/recipes/*.ini ||
        fail 'the schema'
fi

# ---- completions ---------------------------------------------------------------------------------
"$dtrain" help --bash >"$tmp/dtrain.bash" || fail 'help --bash'
"$dtrain" help --zsh >"$tmp/_dtrain" || fail 'help --zsh'
cat >"$tmp/complete.bash" <<'END'
. "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$(($(wc -w <<<"$2") - 1)) COMPREPLY=()
[[ $2 == *" " ]] && COMP_CWORD=$((COMP_CWORD + 1))
_dtrain
echo "${COMPREPLY[*]}"
END
# completes LINE WORDS: what bash offers after LINE.
completes() { check_eq "'$1'" "$(bash "$tmp/complete.bash" "$tmp/dtrain.bash" "$1")" "$2"; }
check_eq 'commands that complete' \
    "$(sed -n "s/ *local commands='\(.*\)'/\1/p" "$tmp/dtrain.bash")" \
    "$(paste -s -d ' ' "$tmp/commands")"
if command -v bash >/dev/null; then
    completes 'dtrain shar' shard
    completes 'dtrain c.ini train.warmup' train.warmup_steps=
    completes 'dtrain c.ini train.mode=' 'sync async'
    completes 'dtrain train train.mode=a' async
    completes 'dtrain c.ini run.reprod' 'run.reproducible=yes run.reproducible=no'
    completes 'dtrain compare --' '--csv --json --log=error --log=warn --log=info --log=debug'
    completes 'dtrain eval run.' 'run.threads= run.kernel='
    completes 'dtrain help insp' inspect
    completes 'dtrain options train.plat' train.plateau_evals
    completes 'dtrain help train.plat' train.plateau_evals
    completes 'dtrain tune-lr train.warmup' train.warmup_steps=
    completes 'dtrain launch -np 3 c.ini train.mode=a' async
fi
command -v zsh >/dev/null || skip 'zsh is not installed; all else passed'
zsh -n "$tmp/_dtrain" || fail 'zsh does not read its completion'
# expands LINE TEXT: zsh makes of LINE what holds TEXT.
expands() {
    timeout "$limit" /usr/bin/python3 tests/e2e/zsh_line.py "$tmp" "$1" 2>&1 |
        tr -d '\007' >"$tmp/out"
    grep -qF -e "$2" "$tmp/out" || { cat -v "$tmp/out"; fail "zsh: '$1' does not give '$2'"; }
    echo "zsh: $1: $2"
}
expands 'dtrain predi' 'dtrain predict'
expands 'dtrain train train.warmup' 'train.warmup_steps='
expands 'dtrain train train.mode=asy' 'train.mode=async'
expands 'dtrain options train.plat' 'train.plateau_evals '
expands 'dtrain help train.plat' 'train.plateau_evals '
