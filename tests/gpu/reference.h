// SPDX-License-Identifier: MIT
//
// Attention and its gradients in float64, written as the definition reads. Layouts are those of attention.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace reference {

using Values = std::vector<double>;

struct Problem {
    int batch, heads, queries, keys, size;
    double scale;
    bool causal; // the last query sees all keys

    std::size_t query(int b, int h, int i) const {
        return ((std::size_t(b) * queries + i) * heads + h) * size;
    }
    std::size_t key(int b, int h, int j) const { return ((std::size_t(b) * keys + j) * heads + h) * size; }
    std::size_t row(int b, int h, int i) const { return (std::size_t(b) * heads + h) * queries + i; }
    bool sees(int i, int j) const { return !causal || j <= i + keys - queries; }
};

inline double dot(const double *a, const double *b, int size) {
    double sum = 0;
    for (int d = 0; d < size; ++d)
        sum += a[d] * b[d];
    return sum;
}

inline void add(double *target, double factor, const double *values, int size) {
    for (int d = 0; d < size; ++d)
        target[d] += factor * values[d];
}

// One row of softmax(scale * q k^T), zero where nothing is seen; `lse` becomes the logarithm of the sum.
inline Values probabilities(const Problem &p, const Values &q, const Values &k, int b, int h, int i,
                            double &lse) {
    Values row(p.keys);
    double largest = -INFINITY, sum = 0;
    for (int j = 0; j < p.keys; ++j) {
        row[j] = p.sees(i, j) ? p.scale * dot(&q[p.query(b, h, i)], &k[p.key(b, h, j)], p.size) : -INFINITY;
        largest = std::max(largest, row[j]);
    }
    for (double &value : row)
        sum += value = std::exp(value - largest);
    for (double &value : row)
        value /= sum;
    lse = largest + std::log(sum);
    return row;
}

struct Forward {
    Values o, lse;
};

inline Forward forward(const Problem &p, const Values &q, const Values &k, const Values &v) {
    Forward result{Values(q.size()), Values(std::size_t(p.batch) * p.heads * p.queries)};
    for (int b = 0; b < p.batch; ++b)
        for (int h = 0; h < p.heads; ++h)
            for (int i = 0; i < p.queries; ++i) {
                const Values row = probabilities(p, q, k, b, h, i, result.lse[p.row(b, h, i)]);
                for (int j = 0; j < p.keys; ++j)
                    add(&result.o[p.query(b, h, i)], row[j], &v[p.key(b, h, j)], p.size);
            }
    return result;
}

struct Backward {
    Values dq, dk, dv;
};

// The gradients of sum(o * d_o).
inline Backward backward(const Problem &p, const Values &q, const Values &k, const Values &v,
                         const Values &d_o) {
    Backward result{Values(q.size()), Values(k.size()), Values(v.size())};
    const Values o = forward(p, q, k, v).o;
    for (int b = 0; b < p.batch; ++b)
        for (int h = 0; h < p.heads; ++h)
            for (int i = 0; i < p.queries; ++i) {
                const std::size_t at = p.query(b, h, i);
                double lse;
                const Values row = probabilities(p, q, k, b, h, i, lse);
                const double mean = dot(&o[at], &d_o[at], p.size);
                for (int j = 0; j < p.keys; ++j) {
                    const std::size_t to = p.key(b, h, j);
                    const double d_score = p.scale * row[j] * (dot(&d_o[at], &v[to], p.size) - mean);
                    add(&result.dv[to], row[j], &d_o[at], p.size);
                    add(&result.dq[at], d_score, &k[to], p.size);
                    add(&result.dk[to], d_score, &q[at], p.size);
                }
            }
    return result;
}

} // namespace reference
