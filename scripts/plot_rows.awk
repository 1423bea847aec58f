# Pictures of the rows that t/shown names, for plot_examples.sh: t/row.N, t/target.N and t/values.N
# of the N-th one, each a line a point: x, y, and the value, or red, green and blue. h, w: height
# and width; c: channels of the features.
function picture(key, channels, file,    v, n, i, x, y, k, low, high, sum) {
    if (!match($0, "\"" key "\":\\[[^]]*")) return
    n = split(substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4), v, ",")
    low = high = v[1] + 0
    for (i = 1; i <= n; i++) {
        if (v[i] + 0 < low) low = v[i] + 0
        if (v[i] + 0 > high) high = v[i] + 0
    }
    span = high > low ? high - low : 1
    for (y = 0; y < h; y++) for (x = 0; x < w; x++) {
        i = (y * w + x) * channels
        printf "%d %d", x, y >file
        if (channels == 3) {
            for (k = 1; k <= 3; k++) printf " %d", 255 * (v[i + k] - low) / span >file
        } else {
            sum = 0
            for (k = 1; k <= channels; k++) sum += v[i + k]
            printf " %.6g", sum / channels >file
        }
        print "" >file
    }
    close(file)
}
BEGIN {
    while ((getline line <(t "/shown")) > 0) {
        split(line, f, " ")
        place[f[3]] = ++n_shown
    }
}
NR in place {
    picture("features", c, t "/row." place[NR])
    picture("target", 1, t "/target." place[NR])
    picture("values", 1, t "/values." place[NR])
}
