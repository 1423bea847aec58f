/* Numbers in text. Fails if a number is not read as the nearest double: because it has a digit too
 * many for the fast method, because a division rounds twice, or because digits overflow. */
#include "unit/suite.h"

#include <math.h>

#include "text/text.h"

enum { MANY = 200000 };

static void expect_as_strtod(const char *text)
{
    double value = 0;
    ck_assert_msg(dt__number_parse(text, strlen(text), &value) == DT__NUMBER_GOOD, "%s", text);
    ck_assert_msg(value == strtod(text, NULL), "%s is read as %.17g", text, value);
}

/* Prints number `index` in one of the forms that programs use. */
static void print_number(const struct dt_rng *rng, uint64_t index, char text[64])
{
    unsigned long long a = dt__rng_u64(rng, 2 * index), b = dt__rng_u64(rng, 2 * index + 1);
    double uniform = dt__rng_uniform(rng, index);
    switch (index % 5) {
    case 0: /* as Python prints a double */
        snprintf(text, 64, "%.17g", uniform);
        break;
    case 1:
        snprintf(text, 64, "-%llu.%llu", a % 1000, b >> (a % 64));
        break;
    case 2:
        snprintf(text, 64, "0.000%llu", a >> (b % 32));
        break;
    case 3: /* an integer, often above 2^53 */
        snprintf(text, 64, "%llu", a >> (b % 16));
        break;
    default: /* half-way between two floats: many digits are needed to round it */
        snprintf(text, 64, "%.19g",
                 ((double)(float)uniform + (double)nextafterf((float)uniform, 2)) / 2);
    }
}

START_TEST(numbers_are_read_as_the_nearest_double)
{
    const struct dt_rng rng = dt__rng_make(1, DT_STREAM_TEST, 0, 0);
    for (uint64_t i = 0; i < MANY; i++) {
        char text[64];
        print_number(&rng, i, text);
        expect_as_strtod(text);
    }
}
END_TEST

START_TEST(extreme_numbers_are_read)
{
    static const char *const texts[] = {"0",
                                        "-0.0",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740995.5",
                                        "9999999999999999999",
                                        "18446744073709551616",
                                        "0.0000000000000000000001",
                                        "0.00000000000000000000001",
                                        "00000000000000000000001.5",
                                        "1.00000000000000011102230246251565",
                                        "9007199254740993.000",
                                        "4503599627370497.5",
                                        "3e38",
                                        "1e-45",
                                        ".5",
                                        "5."};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_as_strtod(texts[i]);
}
END_TEST

/* If the fast method returns a double, that is the nearest one, and *at is after the digits
 * read. */
START_TEST(the_fast_method_is_exact)
{
    const struct dt_rng rng = dt__rng_make(2, DT_STREAM_TEST, 0, 0);
    int scanned = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        char text[64];
        double value;
        print_number(&rng, i, text);
        const char *at = text;
        if (!dt__number_scan(&at, text + strlen(text), &value) || *at) continue;
        scanned++;
        ck_assert_msg(value == strtod(text, NULL), "%s is scanned as %.17g", text, value);
    }
    ck_assert_int_gt(scanned, MANY / 2);
}
END_TEST

START_TEST(other_texts_are_refused)
{
    static const char *const words[] = {"", "-", "abc", "1x", "0x10", "1e", "1,5", "--1", "1.2.3"};
    static const char *const not_finite[] = {"nan", "-inf", "Infinity", "1e39", "-4e38"};
    double value = 7;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_int_eq(dt__number_parse(words[i], strlen(words[i]), &value), DT__NUMBER_BAD);
    for (size_t i = 0; i < sizeof not_finite / sizeof *not_finite; i++)
        ck_assert_int_eq(dt__number_parse(not_finite[i], strlen(not_finite[i]), &value),
                         DT__NUMBER_NOT_FINITE);
    ck_assert(value == 7);
    ck_assert_int_eq(dt__number_parse("3.4028235e+38", 13, &value), DT__NUMBER_GOOD); /* FLT_MAX */
}
END_TEST

/* Numbers with units are distinguished from texts, dates, versions and ranges. */
START_TEST(numbers_with_units_are_recognised)
{
    static const struct {
        const char *text;
        bool comma, unit;
    } cases[] = {{"5%", false, true},
                 {"12.5 %", false, true},
                 {"$3", false, true},
                 {"\xc2\xa3"
                  "3.50",
                  false, true},
                 {"3 \xe2\x82\xac", false, true},
                 {"1,250", true, true},
                 {"0,5", true, false},
                 {"2,037,120", false, true},
                 {"-1,250.75", false, true},
                 {"$1,250", false, true},
                 {"1,2,3", false, false},
                 {"12,34,567", false, false},
                 {"1234,567", true, false},
                 {"%", false, false},
                 {"", false, false},
                 {"5", false, false},
                 {"$", false, false},
                 {"a%", false, false},
                 {"1,", true, false},
                 {",5", true, false},
                 {"1.000,5", false, true},
                 {"1 250", false, true},
                 {"1\xc2\xa0"
                  "250,5",
                  false, true},
                 {"1\xe2\x80\xaf"
                  "250.5",
                  false, true},
                 {"1'250.5", false, true},
                 {"0,5 %", false, true},
                 {"1.250.000", false, true},
                 {"12 5", false, false},
                 {"4.3.2021", false, false},
                 {"1 250 0", false, false},
                 {"100-200", false, false},
                 {"1,250,", false, false},
                 {"1,2500", true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        const enum dt__text_kind kind = dt__text_kind(text, strlen(text));
        const bool any_comma_or_unit = kind == DT__TEXT_COMMA_OR_UNIT;
        ck_assert_msg((kind == DT__TEXT_COMMA || any_comma_or_unit) == cases[i].comma, "%s", text);
        ck_assert_msg((kind == DT__TEXT_UNIT || any_comma_or_unit) == cases[i].unit, "%s", text);
    }
}
END_TEST

SUITE("number", numbers_with_units_are_recognised, numbers_are_read_as_the_nearest_double,
      extreme_numbers_are_read, the_fast_method_is_exact, other_texts_are_refused)
