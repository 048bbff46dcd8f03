// Tables of many sizes with random conditions: first_row finds what looking at one link after another finds.
#include "ck_jit_dispatch.h"

#include <cstdio>
#include <random>
#include <vector>

ck_jit::Slot ck_jit::slots[ck_jit::kSlotCount];

namespace {

std::mt19937_64 random_bits;
int wrong = 0, found = 0;

template <unsigned Conditions, std::size_t Links> void check() {
    static ck_jit::Table<Conditions, 1, Links> table;
    table = {};
    std::vector<std::uint64_t> needs(Links);
    for (std::size_t link = 0; link < Links; ++link) {
        // Few conditions, so that some links can be had, and not the first ones only.
        needs[link] = random_bits() & random_bits() & random_bits() & (~0ULL >> (64 - Conditions));
        needs[link] |= 1ULL << (random_bits() % Conditions);
        for (unsigned condition = 0; condition < Conditions; ++condition)
            table.needed[link / 64][condition] |= (needs[link] >> condition & 1) << link % 64;
    }
    for (int i = 0; i < 300; ++i) {
        std::uint64_t holds = random_bits() & (~0ULL >> (64 - Conditions));
        if (i % 3 == 0)
            holds &= random_bits();
        if (i == 0)
            holds = 0;
        const ck_jit::Row<1> *expected = nullptr;
        for (std::size_t link = 0; link < Links && !expected; ++link)
            if ((needs[link] & ~holds) == 0)
                expected = &table.rows[link];
        wrong += ck_jit::first_row(table, holds) != expected;
        found += expected != nullptr;
    }
}

} // namespace

int main() {
    check<1, 1>(), check<1, 64>(), check<1, 65>();
    check<2, 63>(), check<7, 64>(), check<7, 65>(), check<30, 1>(), check<30, 127>();
    check<63, 128>(), check<64, 129>(), check<64, 1000>(), check<20, 320>();
    std::printf("%d wrong, %d found\n", wrong, found);
    return wrong != 0 || found < 100;
}
