// SPDX-License-Identifier: MIT
//
// The reference against what it must be: a case solved by hand, and finite differences for the gradients.
#include "reference.h"

#include <cstdio>
#include <random>

using reference::Problem;
using reference::Values;

namespace {

int failures = 0;

void expect_near(const char *what, double value, double expected, double tolerance) {
    if (std::abs(value - expected) <= tolerance)
        return;
    std::printf("%s: %.12g, expected %.12g\n", what, value, expected);
    ++failures;
}

Values random_values(std::mt19937 &generator, std::size_t count) {
    std::normal_distribution<double> normal;
    Values values(count);
    for (double &value : values)
        value = normal(generator);
    return values;
}

double loss(const Problem &p, const Values &q, const Values &k, const Values &v, const Values &d_o) {
    const Values o = reference::forward(p, q, k, v).o;
    double sum = 0;
    for (std::size_t n = 0; n < o.size(); ++n)
        sum += o[n] * d_o[n];
    return sum;
}

void solved_by_hand() {
    // Scores 0 and log 3: probabilities 1/4 and 3/4.
    const Problem p{1, 1, 1, 2, 1, 1.0, false};
    const auto result = reference::forward(p, {1.0}, {0.0, std::log(3.0)}, {8.0, 4.0});
    expect_near("o", result.o[0], 5.0, 1e-12);
    expect_near("lse", result.lse[0], std::log(4.0), 1e-12);
    // With a causal mask the first of two queries sees the first two of three keys.
    const Problem masked{1, 1, 2, 3, 1, 1.0, true};
    const auto rows = reference::forward(masked, {0.0, 0.0}, {1.0, 2.0, 3.0}, {3.0, 9.0, 30.0});
    expect_near("first row", rows.o[0], 6.0, 1e-12);
    expect_near("last row", rows.o[1], 14.0, 1e-12);
}

void gradients(bool causal) {
    std::mt19937 generator(7);
    const Problem p{2, 2, 3, 5, 4, 0.5, causal};
    const std::size_t queries = std::size_t(p.batch) * p.queries * p.heads * p.size;
    const std::size_t keys = std::size_t(p.batch) * p.keys * p.heads * p.size;
    Values q = random_values(generator, queries), k = random_values(generator, keys),
           v = random_values(generator, keys);
    const Values d_o = random_values(generator, queries);
    const auto result = reference::backward(p, q, k, v, d_o);
    const auto compare = [&](const char *what, Values &values, const Values &gradient) {
        constexpr double step = 1e-5;
        for (std::size_t n = 0; n < values.size(); ++n) {
            const double before = values[n];
            values[n] = before + step;
            const double above = loss(p, q, k, v, d_o);
            values[n] = before - step;
            const double below = loss(p, q, k, v, d_o);
            values[n] = before;
            expect_near(what, gradient[n], (above - below) / (2 * step), 1e-8);
        }
    };
    compare("dq", q, result.dq);
    compare("dk", k, result.dk);
    compare("dv", v, result.dv);
}

} // namespace

int main() {
    solved_by_hand();
    gradients(false);
    gradients(true);
    return failures ? 1 : 0;
}
