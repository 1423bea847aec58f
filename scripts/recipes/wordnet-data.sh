#!/bin/sh
# Makes text to classify from WordNet 3.0 (Debian's wordnet-base): what a word means, in words, to
# the one of 45 files that its editors keep it in (noun.animal, verb.motion, adj.all ...).
# DIR/train.svm and, every tenth gloss, DIR/test.svm, in LIBSVM's format: the words that stand in
# two glosses or more, the most frequent one first, each row with length 1.
#   scripts/recipes/wordnet-data.sh [DIR]     DIR: runs/wordnet-data
set -eu
dir=${1:-runs/wordnet-data}
from=${WORDNET:-/usr/share/wordnet}
[ -f "$from/data.noun" ] ||
    { echo "$from/data.noun: not there (apt-get install wordnet-base)" >&2; exit 1; }
mkdir -p "$dir"
words=$dir/words.tmp glosses=$dir/glosses.tmp
trap 'rm -f "$words" "$glosses"' EXIT

# "CLASS WORD WORD ..." a gloss, each word once; lines that begin with a blank are the licence.
export LC_ALL=C
cat "$from/data.adj" "$from/data.adv" "$from/data.noun" "$from/data.verb" | awk '!/^ / {
    class = $2 + 0
    sub(/^[^|]*\| */, "")
    n = split(tolower($0), word, /[^a-z]+/)
    line = class
    split("", seen)
    for (i = 1; i <= n; i++)
        if (word[i] != "" && !(word[i] in seen)) {
            seen[word[i]]
            line = line " " word[i]
        }
    print line
}' >"$glosses"
awk '{ for (i = 2; i <= NF; i++) count[$i]++ }
    END { for (word in count) if (count[word] > 1) print count[word], word }' "$glosses" |
    sort -k1,1nr -k2 >"$words"
awk -v train="$dir/train.svm" -v test="$dir/test.svm" '
    NR == FNR { number[$2] = FNR; next }
    {
        n = 0
        for (i = 2; i <= NF; i++)
            if ($i in number) { # by number: insertion, for rows are short
                for (k = n++; k > 0 && at[k] > number[$i]; k--) at[k + 1] = at[k]
                at[k + 1] = number[$i]
            }
        if (!n) next
        line = $1
        for (i = 1; i <= n; i++) line = line sprintf(" %d:%.6g", at[i], 1 / sqrt(n))
        print line >(FNR % 10 ? train : test)
    }' "$words" "$glosses"
