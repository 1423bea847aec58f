# Tables as in the examples of scripts/doc/tables.md, into the working directory.
BEGIN {
    srand(1)
    print "id,area,heating,sold,price" >"houses.csv"
    print "a,b,fraud" >"fraud.csv"
    print "age,children,visits" >"visits.csv"
    print "page,hour,clicked" >"clicks.csv"
    print "a,b,c,d,target" >"iris.csv"
    for (i = 0; i < 600; i++) {
        house(i)
        fraud()
        visit()
        for (j = 0; j < 20; j++) click()
        iris(i % 3)
    }
}
function house(i,    area, gas, year, known, month, day) {
    area = 50 + 100 * rand()
    gas = rand() < .5
    year = 1990 + int(30 * rand())
    known = rand() < .1 ? "" : area
    month = 1 + int(12 * rand())
    day = 1 + int(28 * rand())
    printf "%d,%s,%s,%d-%02d-%02d,%d\n", 7 + 3 * i, known, gas ? "gas" : "oil", year, month, day,
        1000 * (area + 20 * gas + 5 * (year - 1990)) >"houses.csv"
}
function fraud(    rare) {
    rare = rand() < .1
    printf "%.3f,%.3f,%s\n", rand() + rare, rand() - rare / 2, rare ? "yes" : "no" >"fraud.csv"
}
function visit(    age, children) {
    age = int(80 * rand())
    children = int(3 * rand())
    printf "%d,%d,%d\n", age, children, (age / 10 + 2 * children) * (.5 + rand()) >"visits.csv"
}
function click(    page) {
    page = int(5000 * rand())
    printf "p%d,%d,%d\n", page, 24 * rand(), rand() < (page % 2 ? .9 : .1) >"clicks.csv"
}
function iris(class) {
    printf "%.1f,%.1f,%.1f,%.1f,%d\n", 5 + class + rand(), 3 + rand(), 1 + 2 * class + rand(),
        class + rand(), class >"iris.csv"
}
