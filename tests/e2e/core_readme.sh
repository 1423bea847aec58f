#!/bin/sh
# Fails if the README's commands do not lead from a CSV to predictions when pasted: on its own data,
# and on a file with a byte order mark, quoted names, commas, quotes and line ends within fields,
# text labels and CRLF.
. "$(dirname "$0")/lib.sh"
sed -n '/<!-- csv -->/,/<!-- end of csv -->/p' README.md | sed '/^```/d; /^<!--/d' >"$tmp/pasted"
commands=$(grep -c '^[^ ]' "$tmp/pasted")
check_ge 'commands' "$commands" 3
check_le 'commands' "$commands" 5
mkdir "$tmp/there" && cd "$tmp/there" || exit 1
ln -s "$dtrain" dtrain && ln -s "$root/scripts" scripts

# paste ROWS: one prediction a row, and most of them right.
paste_it() {
    rm -rf runs predictions.jsonl
    sh -e "$tmp/pasted" >"$tmp/out" 2>"$tmp/err" || fail_with "$tmp/err" 'a pasted command'
    check_ge accuracy "$(grep confusion "$tmp/out" | json accuracy)" 0.9
    check_eq predictions "$(wc -l <predictions.jsonl)" "$1"
    check_eq 'labels' "$(sed 's/.*"label":"\(.*\)","prob.*/\1/' predictions.jsonl |
        LC_ALL=C sort -u | paste -sd/)" "$2"
}
paste_it 342 Adelie/Chinstrap/Gentoo

awk 'BEGIN {
    srand(7)
    printf "\357\273\277\"name, all of it\",\"length, mm\",weight,\"wing \"\"span\"\"\",kind\r\n"
    split("\"Eagle, golden\" Owl \"\"\"Gull\"\"\"", kind, " ")
    kind[1] = "\"Eagle, golden\""; kind[2] = "Owl"; kind[3] = "\"\"\"Gull\"\"\""
    for (i = 0; i < 300; i++) {
        k = i % 3
        printf "\"bird %d, of\r\nhere\",%.2f,\"%.3f\",%.3f,%s\r\n", i, 50 + 20 * k + 5 * rand(),
            9 - 2 * k + rand(), 3 * k + 2 * rand(), kind[k + 1]
    }
}' >birds.csv
sed -i '1s/.*/csv=birds.csv label=kind ignore="0"/' "$tmp/pasted"
paste_it 300 'Eagle, golden/Owl/\"Gull\"'
