#!/bin/sh
# Figures of the shape of the code, each a place to look: branches on a feature, large structs and
# the files that write them, files that need each other, frames of a call.
#   scripts/house.sh [DIR]
#       all figures; DIR: another checkout (.)
#   scripts/house.sh list
#       the branches, a line each
#   scripts/house.sh rules
#       only the figures that `make lint` keeps; non-zero if one is exceeded
#   scripts/house.sh frames FROM TO CMD...
#       frames between two functions in a run of CMD, both counted (gdb; for figures that compare,
#       build with CFLAGS='-O1 -g -fno-inline')
export LC_ALL=C
scripts=$(cd "$(dirname "$0")" && pwd)

# A feature is a list of identifiers. A rename changes the list, not the count.
COMM_FEATURES='nodes|dealt|is_apart|wire|errors|norm|is_one_cut|sums'
TRAIN_FEATURES='local|local_steps|dt__is_local|dt__overlaps|overlaps|overlap|split|splits'
# Bounds of `rules`, which follow the code down.
MOST_COMM=40 MOST_TRAIN=9 MOST_MEMBERS=25
# What is made once, or changes in one file: a struct and the files that may write it.
COMM_CONST='dt__topology topology|exchange
dt__layout layout|exchange|owners|reduce|rows
dt__node_memory exchange|rows|tiles|sum_norm
dt__step exchange_step'

# code FILE...: lines as FILE:LINE:TEXT, without comments and strings.
code() {
    awk 'FNR == 1 { inside = 0 }
    {
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        while (1) {
            if (inside) {
                if (!(at = index(line, "*/"))) { line = ""; break }
                line = substr(line, at + 2); inside = 0
            }
            if (!(at = index(line, "/*"))) break
            rest = substr(line, at + 2); line = substr(line, 1, at - 1)
            if (end = index(rest, "*/")) line = line " " substr(rest, end + 2)
            else { print FILENAME ":" FNR ":" line; line = ""; inside = 1 }
        }
        if (line ~ /[^ ]/) print FILENAME ":" FNR ":" line
    }' "$@"
}

# branches FEATURES FILE...: lines that decide by a feature.
branches() {
    features=$1
    shift
    decides="\b(if|while|switch) \(|\bfor \(.*;.*;| \? |&&|\|\||return .*[!=<>]=|= !?[a-z>.-]*"
    decides="$decides\b($features);"
    # A member of a stage's struct is a name of its own, as norm_params was; a set's split is one of
    # rows.
    code "$@" | sed -E -e 's/\bset->split\b/set->side/' \
        -e 's/\b(norm|wire)\.(params|measures?|squares|groups)\b/\1_\2/g' |
        grep -E "^[^:]*:[0-9]+:.*($decides)" | grep -E "^[^:]*:[0-9]+:.*\b($features)\b"
}

# structs FILE...: "MEMBERS STRUCT FILE", the largest first.
structs() {
    code "$@" |
        awk '{
            split($0, place, ":")
            line = substr($0, length(place[1]) + length(place[2]) + 3)
            if (line ~ /^struct [a-z_0-9]+ \{/) {
                split(line, word, " ")
                name = word[2]
                members = 0
                file = place[1]
            } else if (name && line ~ /^\};|^\} /) {
                print members, name, file
                name = ""
            } else if (name && line ~ /;/) {
                gsub(/\([^()]*\)/, "", line)
                gsub(/\([^()]*\)/, "", line)
                gsub(/\{[^}]*\}/, "", line)
                members += gsub(/[,;]/, "", line)
            }
        }' | sort -rn
}

# circles DIR: files below DIR that need each other, by the dt_ functions that they define and call.
circles() {
    code $(find "$1" -name '*.c' | sort) | awk -f "$scripts/circles.awk"
}

# writers STRUCT MEMBER_FILE ROOM: files of a room that assign to members of a struct (by name).
writers() {
    names=$(code "$2" | awk -v want="$1" '{
        split($0, place, ":")
        line = substr($0, length(place[1]) + length(place[2]) + 3)
        if (line ~ "^struct " want " \\{")
            inside = 1
        else if (line ~ /^\}/)
            inside = 0
        else if (inside) {
            gsub(/\[[^]]*\]/, "", line)
            gsub(/;.*/, "", line)
            n = split(line, part, ",")
            for (i = 1; i <= n; i++) if (match(part[i], /[a-z_0-9]+ *$/)) {
                name = substr(part[i], RSTART)
                gsub(/ /, "", name)
                print name
            }
        }
    }' | paste -s -d '|')
    [ -z "$names" ] ||
        code $(find "$3" -name '*.c') |
            grep -E "(->|\.)($names)(\[[^]]*\])* *([-+|&*/]?=[^=]|\+\+|--)" | cut -d: -f1 |
            sort -u | wc -l
}

# owned ROOM PART OWNER...: assignments to members of a part of a larger struct, but in the files
# that own it.
owned() {
    room=$1 part=$2
    shift 2
    others=$(ls "$room"/*.c | grep -vE "/($(echo "$*" | tr ' ' '|'))\.c")
    code $others | grep -E "\b$part[a-z_]+(\[[^]]*\])* *([-+|&*/]?=[^=]|\+\+|--)" |
        sed "s/^/house: written outside $*: /"
}

# writable: pointers in comm by which a file could write a struct that is const for it.
writable() {
    echo "$COMM_CONST" | while read -r struct files; do
        code src/comm/*.c | grep -E "\bstruct $struct \*" |
            grep -vE "const struct $struct \*|^src/comm/($files)\.c:"
        code src/comm/exchange.h | grep -E ":[0-9]+:    struct $struct \*"
    done
}

frames() {
    from=$1 to=$2
    shift 2
    gdb -q -batch -ex "set breakpoint pending on" -ex "break $from" -ex run -ex "break $to" -ex \
        continue -ex backtrace --args "$@" 2>/dev/null | grep -E '^#[0-9]+ ' |
        awk -v from="$from" '{n++; print} $0 ~ from {print "frames: " n; exit}'
}

case ${1:-} in
frames) shift; frames "$@"; exit ;;
list) list=1 ;;
rules) rules=1 ;;
esac
case ${1:-} in
'' | list | rules) cd "$(dirname "$0")/.." || exit 1 ;;
*) cd "$1" || exit 1 ;;
esac
# The file of a feature may ask for it.
comm_branches() {
    branches "$COMM_FEATURES" $(ls src/comm/*.c |
        grep -vE '/(async.*|world|watchdog|collectives|split|requests|wire|sum_norm)\.c')
}
train_branches() {
    branches "$TRAIN_FEATURES" \
        $(ls src/train/*.c | grep -vE '/(local|replicas|rounds|split_layers)\.c')
}
[ -z "${list:-}" ] || { comm_branches; train_branches; exit; }
comm=$(comm_branches | wc -l)
train=$(train_branches | wc -l)
if [ "${rules:-}" ]; then
    tmp=$(mktemp)
    trap 'rm -f "$tmp"' EXIT
    # The bounds follow the code down.
    for room in comm train text table data predict; do circles "src/$room"; done |
        sed 's/^/house: files that need each other:/' >"$tmp"
    {
        owned src/train '(bank->|bank\.)files\.' rundir
        owned src/train '(bank->|bank\.)start\.' resume
        owned src/train '(bank->|bank\.)log\.' records
    } >>"$tmp"
    writable | sed 's/^/house: this file may only read it: /' >>"$tmp"
    structs src/comm/*.[ch] |
        awk -v most=$MOST_MEMBERS \
            '$1 > most {print "house: struct " $2 " (" $3 ") has " $1 " members"}' >>"$tmp"
    [ "$comm" -le $MOST_COMM ] && [ "$train" -le $MOST_TRAIN ] && [ ! -s "$tmp" ] && exit
    cat "$tmp"
    echo "house: $comm branches in comm, at most $MOST_COMM; $train in train, at most $MOST_TRAIN"
    exit 1
fi
echo "$comm branches of comm's sync files on nodes, dealt rows, wire or norm"
echo "$train branches of train on local steps or split layers"
for room in comm train text table data predict; do
    [ -d "src/$room" ] || continue
    circles "src/$room" | while read -r files; do
        names=$(echo "$files" | sed "s|src/$room/||g")
        echo "src/$room: $(echo "$files" | wc -w) files need each other: $names"
    done
done
structs src/comm/*.[ch] src/train/*.[ch] include/dtrain/*.h | while read -r members name file; do
    [ "$members" -gt 20 ] || break
    room=$(echo "$file" | cut -d/ -f1,2)
    [ "$room" != include/dtrain ] || room=src
    writers=$(writers "$name" "$file" "$room")
    echo "struct $name ($file): $members members, $writers files write them"
done
