# Sourced after lib.sh: small tables and sparse rows that the tests share.

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
# make_sparse FILE ROWS GAP: LIBSVM rows of five classes; features are up to GAP apart, the first
# ones are the frequent ones.
make_sparse() {
    awk -v rows="$2" -v gap="$3" 'BEGIN {
        for (srand(3); n < rows; n++) {
            class = int(rand() * 5)
            line = class
            for (i = f = 0; i < 8; i++) {
                f += 1 + int(rand() * rand() * gap)
                line = line " " f ":" int(100 * rand() + 30 * (f % 5 == class)) / 100
            }
            print line
        }
    }' >"$1"
}
# make_shops FILE ROWS SHOPS: prices by shop, weight and color; the first shops are the frequent
# ones.
make_shops() {
    awk -v rows="$2" -v shops="$3" 'BEGIN {
        split("red,green,blue", color, ",")
        print "shop,weight,color,price"
        for (srand(4); n++ < rows;) {
            shop = int(rand() * rand() * shops)
            c = 1 + int(rand() * 3)
            w = rand()
            price = (shop % 7) * 0.3 + w * (c == 2) + 0.1 * rand()
            printf "shop %d,%.3f,%s,%.4f\n", shop, w, color[c], price
        }
    }' >"$1"
}
# make_plane FILE: 200 rows of a, b and y = 3 a + 2 b.
make_plane() {
    awk 'BEGIN {
        srand(1)
        print "a,b,y"
        for (i = 0; i < 200; i++) {
            a = rand()
            b = rand()
            print a "," b "," 3 * a + 2 * b
        }
    }' >"$1"
}
