# Sourced after lib.sh: small problems, one that a linear model cannot solve, and one of many
# classes.

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

# make_words FILE CLASSES: two columns of texts, and three rows of each class, which comes last.
make_words() {
    awk -v classes="$2" 'BEGIN {
        print "shelf,place,label"
        for (n = 0; n < 3 * classes; n++) {
            class = (n * 7) % classes
            printf "s%d,p%d,c%d\n", class % 40, int(class / 40) + n % 2, class
        }
    }' >"$1"
}
# make_classes FILE CLASSES: two rows of each class, which comes first, and sixteen numbers.
make_classes() {
    awk -v classes="$2" 'BEGIN {
        srand(7)
        for (n = 0; n < 2 * classes; n++) {
            line = class = n % classes
            for (i = 0; i < 16; i++)
                line = line "," int(100 * (rand() + (int(class / (i + 1)) % 7) / 3))
            print line
        }
    }' >"$1"
}
