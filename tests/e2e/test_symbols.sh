#!/bin/sh
# Fails if the library exports what no header declares, lacks what a header declares, or has a
# function that no example calls. scripts/libdtrain.symbols is the list of its exports: the
# installed headers declare the same, the shared library has the same, and an example or the Fortran
# module calls each function.
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1
list=scripts/libdtrain.symbols
LC_ALL=C sort -c -u $list || fail "$list is not in order"
grep -hoE '\bdt_[a-z0-9_]+\(' include/dtrain/*.h | tr -d '(' | grep -v '_fn$' |
    LC_ALL=C sort -u >"$tmp/declared"
diff "$tmp/declared" $list || fail 'the headers declare (<) something else than the list says (>)'
make --no-print-directory -s BUILD="$BUILD" \
    "$BUILD/libdtrain.so.$(sed -n 's/^VERSION := //p' Makefile)" || fail 'the shared library'
nm -D --defined-only "$BUILD"/libdtrain.so.* | awk '{print $3}' | LC_ALL=C sort >"$tmp/exported"
diff "$tmp/exported" $list || fail 'the library exports (<) something else than the list says (>)'
check_le 'functions in installed headers' "$(wc -l <$list)" 70
while read -r name; do
    grep -qE "\b$name\(" scripts/examples/*.c scripts/examples/*.cpp include/dtrain/dtrain.f90 ||
        fail "nobody calls $name"
done <$list
grep -nE '\b_[A-Z]|[a-z]__[a-z]' include/dtrain/*.h | grep -vE '__cplusplus|:[0-9]+: ?(/\*|\*)' &&
    fail 'a name that C++ reserves'
# A header must not need another one before it, nor a language newer than library.md says.
for header in include/dtrain/*.h; do
    for language in c99 c++11; do
        [ $language = c99 ] || command -v c++ >/dev/null || continue
        echo "#include \"dtrain/$(basename "$header")\"" |
            ${CC:-cc} -std=$language -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only \
                -x"${language%%[19]*}" - || fail "$header alone in $language"
    done
done
! grep -rn '#include "\(base\|comm\|config\|data\|model\|train\)/' include ||
    fail 'an installed header includes one of src'
