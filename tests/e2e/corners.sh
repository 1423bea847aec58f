# Sourced behind lib.sh: a small problem that a linear model cannot solve.

# make_csv FILE: 2000 rows of four numbers and one of three words.
make_csv() {
    awk 'BEGIN {
        srand(3)
        for (i = 0; i < 2000; i++) {
            a = rand() * 2 - 1; b = rand() * 2 - 1; c = rand() * 2 - 1; d = rand() * 2 - 1
            side = a * b + c < 0 ? "north" : d < 0 ? "west" : "east"
            printf "%.5f,%.5f,%.5f,%.5f,%s\n", a, b, c, d, side
        }
    }' >"$1"
}
