/* Layout of an exchange: how buckets are cut into chunks, and which rank owns each chunk. Fails if
 * a float has no owner or two, if nodes disagree about an owner or about the order of messages
 * between two ranks, if a block of the norm is cut, or if the memory of two chunks overlaps. */
#include "views.h"

static const struct setup SETUPS[] = {
    {1, 3, 5, 1, DT_WIRE_F32, false, 100000, {90000, 90010, 100000}},
    {3, 1, 3, 1, DT_WIRE_F32, false, 100000, {90000, 90010, 100000}},
    {2, 4, 8, 1, DT_WIRE_F32, true, 50000, {30000, 30001, 49999, 50000}},
    {3, 2, 7, 3, DT_WIRE_Q8, false, 70000, {40000, 70000}},
    {5, 3, 4, 2, DT_WIRE_BF16, true, 123456, {100, 123456}},
    {4, 2, 2, 1, DT_WIRE_F32, false, 300, {150, 300}},
    {16, 1, 16, 1, DT_WIRE_F32, false, 2000000, {1999000, 2000000}},
};
static const struct setup *const END = SETUPS + sizeof SETUPS / sizeof *SETUPS;

/* Each float is in one chunk, and all ranks have the same owner for it. */
START_TEST(every_float_has_one_owner)
{
    for (const struct setup *setup = SETUPS; setup < END; setup++) {
        const int ranks = views_make(setup, NULL);
        for (int r = 0; r < ranks; r++) {
            const struct dt__layout *layout = &view[r].layout;
            size_t floats = 0;
            EXPECT(layout->chunks == view[0].layout.chunks);
            for (int c = 0; c < layout->chunks; c++) {
                const struct dt__chunk *chunk = &layout->chunk[c];
                const struct dt__chunk *same = view_chunk(&view[0], chunk->at.begin);
                const struct dt__floats at = chunk->at, bucket = layout->bucket[chunk->bucket].at;
                floats += at.end - at.begin;
                EXPECT(at.begin < at.end && at.begin >= bucket.begin && at.end <= bucket.end);
                EXPECT(at.begin == bucket.begin || at.begin % layout->grain == 0);
                EXPECT(at.end == same->at.end && chunk->helper == same->helper);
                EXPECT(chunk->node == same->node && chunk->owner_agent == same->owner_agent);
            }
            EXPECT(floats == setup->params);
        }
        views_free(ranks);
    }
}
END_TEST

/* Both ranks of a pair have the chunks that they exchange in the same order. */
START_TEST(pairs_exchange_in_one_order)
{
    for (const struct setup *setup = SETUPS; setup < END; setup++) {
        const int ranks = views_make(setup, NULL);
        for (int a = 0; a < ranks; a++) {
            const struct dt__topology *topo = &view[a].topo;
            int last[MAX_RANKS] = {0};
            for (int c = 0; c < view[a].layout.chunks; c++) {
                const struct dt__chunk *chunk = &view[a].layout.chunk[c];
                if (chunk->agent != topo->agent || chunk->node == topo->node) continue;
                const int rank = dt__chunk_rank(&view[a].x, chunk, chunk->node);
                const struct dt__chunk *peer_chunk = view_chunk(&view[rank], chunk->at.begin);
                const int place = 1 + (int)(peer_chunk - view[rank].layout.chunk);
                EXPECT(peer_chunk->agent == view[rank].topo.agent);
                EXPECT(dt__chunk_rank(&view[rank].x, peer_chunk, topo->node) == a);
                EXPECT(place > last[rank]);
                last[rank] = place;
            }
        }
        views_free(ranks);
    }
}
END_TEST

/* If the norm is computed, all floats of a block have one owner. */
START_TEST(blocks_of_the_norm_are_whole)
{
    for (const struct setup *setup = SETUPS; setup < END; setup++) {
        const int ranks = views_make(setup, NULL);
        static int owner[2000000 / DT__TREE_BLOCK + 1];
        memset(owner, 0, sizeof owner);
        for (int c = 0; c < view[0].layout.chunks && setup->norm; c++) {
            const struct dt__chunk *chunk = &view[0].layout.chunk[c];
            const int owner_id = 1 + dt__chunk_rank(&view[0].x, chunk, chunk->node);
            for (struct dt__floats block = dt__block_at(chunk->at, chunk->at.begin);
                 block.begin < block.end; block = dt__block_at(chunk->at, block.end)) {
                int *block_owner = &owner[block.begin / DT__TREE_BLOCK];
                EXPECT(!*block_owner || *block_owner == owner_id);
                *block_owner = owner_id;
            }
        }
        views_free(ranks);
    }
}
END_TEST

/* Floats that arrive and floats that stay have memory that does not overlap and is within the
 * counted bytes. */
START_TEST(memory_does_not_overlap)
{
    for (const struct setup *setup = SETUPS; setup < END; setup++) {
        const int ranks = views_make(setup, NULL);
        for (int r = 0; r < ranks && setup->nodes > 1; r++) {
            const struct dt__layout *layout = &view[r].layout;
            size_t bytes = 0, acted = 0, own = 0;
            for (int c = 0; c < layout->chunks; c++) {
                const struct dt__chunk *chunk = &layout->chunk[c];
                const size_t floats = chunk->at.end - chunk->at.begin;
                if (chunk->agent != view[r].topo.agent) continue;
                EXPECT(chunk->sums >= bytes && chunk->update >= chunk->sums);
                bytes = chunk->update + (chunk->wire ? chunk->bytes : 0);
                EXPECT(bytes <= layout->byte_count && chunk->acted_at == acted);
                acted += floats;
                if (chunk->node != view[r].topo.node) continue;
                EXPECT(chunk->own_at == own);
                own += floats;
            }
            EXPECT(acted == layout->acted && own == layout->own);
        }
        views_free(ranks);
    }
}
END_TEST

SUITE("layout", every_float_has_one_owner, pairs_exchange_in_one_order,
      blocks_of_the_norm_are_whole, memory_does_not_overlap)
