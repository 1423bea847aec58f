# Circles of files that need each other, a line each, from lines FILE:LINE:TEXT of C (house.sh). A
# file needs those that define the dt_ functions it names.
{
    split($0, place, ":")
    line = substr($0, length(place[1]) + length(place[2]) + 3)
    file = place[1]
    if (line ~ /^[a-z].*[a-z_0-9]\(/ && line !~ /;$/ && line !~ /^static/) {
        head = line
        sub(/\(.*/, "", head)
        n = split(head, word, /[ *]+/)
        if (word[n] ~ /^dt_/) {
            home[word[n]] = file
            next
        }
    }
    text[file] = text[file] " " line
}
END {
    for (file in text) {
        rest = text[file]
        while (match(rest, /dt_[a-z_0-9]+/)) {
            name = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            if (name in home && home[name] != file) needs[file, home[name]] = 1
        }
    }
    for (a in text) reach[a, a] = 0
    for (pair in needs) reach[pair] = 1
    for (k in text)
        for (a in text)
            if (reach[a, k])
                for (b in text) if (reach[k, b]) reach[a, b] = 1
    for (a in text) if (reach[a, a]) {
        line = ""
        for (b in text) if (b >= a && reach[a, b] && reach[b, a]) line = line " " b
        least = 1
        for (b in text) if (b < a && reach[a, b] && reach[b, a]) least = 0
        if (least) print line
    }
}
