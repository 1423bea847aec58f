/* The order of samples: a permutation for every size, different in each epoch and window. */
#include "data/order.h"

#include "data_files.h"

static const struct {
    uint64_t rows, window, chunk;
} SIZES[] = {
    {1, 1, 1},     {7, 100, 3},     {100, 100, 100}, {100, 10, 5},     {101, 10, 5}, {103, 40, 8},
    {1000, 64, 1}, {1003, 256, 64}, {5000, 512, 64}, {4999, 4998, 17}, {63, 64, 64},
};

static struct dt__order make(size_t i, int replica)
{
    struct dt__order order;
    dt__order_init(&order, 3, replica, SIZES[i].rows, SIZES[i].window, SIZES[i].chunk);
    return order;
}

static uint64_t row_of(struct dt__order *order, uint64_t epoch, uint64_t index)
{
    uint64_t run, slot = dt__order_slot(order, epoch, index);
    uint64_t row = dt__order_row(order, epoch, index / order->window, slot, &run);
    ck_assert_uint_ge(run, 1);
    return row;
}

/* Each row occurs once per epoch, and the order does not depend on the order of requests. */
START_TEST(order_is_a_permutation)
{
    struct dt__order order = make((size_t)_i, 0), other = make((size_t)_i, 0);
    static int seen[5000];
    memset(seen, 0, sizeof seen);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        for (uint64_t i = 0; i < order.rows; i++) {
            uint64_t row = row_of(&order, epoch, i);
            ck_assert_uint_lt(row, order.rows);
            ck_assert_int_eq(seen[row]++, (int)epoch);
            if (i % 7 == 0)
                ck_assert_uint_eq(row_of(&other, epoch ^ 1, i), row_of(&order, epoch ^ 1, i));
        }
}
END_TEST

/* The runs that a window reads are the rows that its slots hold, one by one. */
START_TEST(runs_are_what_slots_hold)
{
    struct dt__order order = make((size_t)_i, 1);
    uint64_t total = 0, run, unused;
    for (uint64_t at = 0; at < dt__order_windows(&order); at++) {
        uint64_t rows = dt__order_window_rows(&order, at);
        for (uint64_t slot = 0; slot < rows; slot += run) {
            uint64_t first = dt__order_row(&order, 2, at, slot, &run);
            ck_assert_uint_le(first + run, order.rows);
            for (uint64_t k = 0; k < run && slot + k < rows; k++)
                ck_assert_uint_eq(dt__order_row(&order, 2, at, slot + k, &unused), first + k);
        }
        total += rows;
    }
    ck_assert_uint_eq(total, order.rows);
}
END_TEST

/* 5000 rows in windows of 512. Epochs, replicas and windows have different orders, and each epoch
 * cuts its chunks elsewhere, so that no row is always among the last. */
START_TEST(no_order_repeats)
{
    enum { LARGE = 8, EPOCHS = 40 };
    struct dt__order a = make(LARGE, 0), b = make(LARGE, 1);
    int epochs = 0, replicas = 0, windows = 0, last = 0;
    for (uint64_t i = 0; i < 512; i++) {
        epochs += dt__order_slot(&a, 0, i) == dt__order_slot(&a, 1, i);
        replicas += dt__order_slot(&a, 0, i) == dt__order_slot(&b, 0, i);
        windows += dt__order_slot(&a, 0, i) == dt__order_slot(&a, 0, 512 + i);
    }
    ck_assert_int_lt(epochs, 20); /* 1 expected */
    ck_assert_int_lt(replicas, 20);
    ck_assert_int_lt(windows, 20);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t i = 4608; i < 5000; i++)
            last += row_of(&a, epoch, i) == 4999;
    ck_assert_int_lt(last, EPOCHS / 2); /* 392 of 5000 expected */
}
END_TEST

DATA_SUITE("order", {order_is_a_permutation, COUNT(SIZES)},
           {runs_are_what_slots_hold, COUNT(SIZES)}, {no_order_repeats, 1})
