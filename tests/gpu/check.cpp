// SPDX-License-Identifier: MIT
//
// The quickstart's calls with random inputs, against the float64 reference. Exit status 1: something is too
// far off.
#include "attention.h"
#include "device_memory.h"
#include "reference.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <string>

namespace {

using reference::Values;

bool passed = true;

double from_bf16(std::uint16_t bits) {
    const std::uint32_t wide = std::uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

// To nearest, ties to even.
std::uint16_t to_bf16(double value) {
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A tensor of bf16 on the device, and the same values as float64.
struct Bf16Tensor {
    std::vector<std::uint16_t> bits;
    Values values;
    DeviceMemory memory;

    explicit Bf16Tensor(const Values &given) : bits(rounded(given)), values(widened(bits)), memory(bits) {}

    static std::vector<std::uint16_t> rounded(const Values &given) {
        std::vector<std::uint16_t> result;
        for (const double value : given)
            result.push_back(to_bf16(value));
        return result;
    }
    static Values widened(const std::vector<std::uint16_t> &bits) {
        Values result;
        for (const std::uint16_t each : bits)
            result.push_back(from_bf16(each));
        return result;
    }
};

Values random_values(std::mt19937 &generator, std::size_t count) {
    std::normal_distribution<double> normal;
    Values values(count);
    for (double &value : values)
        value = normal(generator);
    return values;
}

// The largest error, relative to the largest expected value.
void compare(const std::string &what, const Values &values, const Values &expected, double tolerance) {
    double error = 0, scale = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
        const double difference = std::abs(values[n] - expected[n]);
        // A NaN stays: it is larger than nothing and nothing is larger.
        if (std::isnan(difference) || difference > error)
            error = difference;
        scale = std::max(scale, std::abs(expected[n]));
    }
    const bool good = values.size() == expected.size() && error <= tolerance * scale;
    std::printf("%-20s error %.5f of %.5f %s\n", what.c_str(), error / scale, tolerance,
                good ? "" : "TOO FAR OFF");
    passed = passed && good;
}

void expect_launched(const std::string &what, float result) {
    check(hipDeviceSynchronize(), what.c_str());
    if (result < 0)
        throw std::runtime_error(what + ": no kernel");
}

void run(bool causal) {
    // bf16 keeps 8 bits; probabilities and their gradients are rounded to it between the two products.
    constexpr double tolerance = 0.02, gradient_tolerance = 0.03, lse_tolerance = 0.005;
    const Shape shape{.batch = 2, .heads = 4, .queries = 128, .keys = 256, .size = 128};
    const reference::Problem problem{shape.batch, shape.heads,   shape.queries, shape.keys,
                                     shape.size,  shape.scale(), causal};
    const std::string suffix = causal ? ", causal" : "";
    std::mt19937 generator(11);
    const Bf16Tensor q(random_values(generator, shape.query_elements())),
        k(random_values(generator, shape.key_elements())), v(random_values(generator, shape.key_elements())),
        d_o(random_values(generator, shape.query_elements()));
    const auto expected = reference::forward(problem, q.values, k.values, v.values);

    DeviceMemory o(shape.query_elements() * 2), lse(shape.rows() * sizeof(float));
    const ForwardTensors tensors{q.memory.get(), k.memory.get(), v.memory.get(), o.get(), lse.get()};
    const auto compare_forward = [&](const std::string &what) {
        compare(what + " o", Bf16Tensor::widened(o.read<std::uint16_t>()), expected.o, tolerance);
        const auto floats = lse.read<float>();
        compare(what + " lse", Values(floats.begin(), floats.end()), expected.lse, lse_tolerance);
        o.clear();
        lse.clear();
    };
    expect_launched("forward", forward(shape, tensors, causal, {}));
    compare_forward("forward" + suffix);

    if (!causal) {
        constexpr int splits = 2;
        const DeviceMemory o_acc(splits * shape.query_elements() * sizeof(float)),
            lse_acc(splits * shape.rows() * sizeof(float));
        expect_launched("split-KV", split_forward(shape, tensors, splits, o_acc.get(), lse_acc.get(), {}));
        compare_forward("split-KV");

        // Keys and values in another order than their pages.
        std::vector<int> rows(shape.batch * shape.keys), query_starts(shape.batch + 1),
            page_starts(shape.batch + 1);
        std::iota(rows.begin(), rows.end(), 0);
        std::shuffle(rows.begin(), rows.end(), generator);
        for (int b = 0; b <= shape.batch; ++b) {
            query_starts[b] = b * shape.queries;
            page_starts[b] = b * shape.keys;
        }
        const auto scattered = [&](const Bf16Tensor &tensor) {
            Values result(tensor.values.size());
            const int width = shape.heads * shape.size;
            for (std::size_t n = 0; n < rows.size(); ++n)
                std::copy_n(&tensor.values[n * width], width, &result[std::size_t(rows[n]) * width]);
            return result;
        };
        const Bf16Tensor paged_k(scattered(k)), paged_v(scattered(v));
        const DeviceMemory device_query_starts(query_starts), device_page_starts(page_starts),
            device_rows(rows);
        expect_launched(
            "batch prefill",
            batch_prefill(shape,
                          {q.memory.get(), paged_k.memory.get(), paged_v.memory.get(), o.get(), lse.get()},
                          {device_query_starts.get(), device_page_starts.get(), device_rows.get()}, {}));
        // Its lse is [heads][batch * queries].
        compare("batch prefill o", Bf16Tensor::widened(o.read<std::uint16_t>()), expected.o, tolerance);
    }

    const Bf16Tensor output(expected.o);
    const DeviceMemory given_lse(std::vector<float>(expected.lse.begin(), expected.lse.end()));
    const DeviceMemory d(shape.rows() * sizeof(float)), dq(shape.query_elements() * 2),
        dk(shape.key_elements() * 2), dv(shape.key_elements() * 2),
        dq_acc(shape.query_elements() * sizeof(float));
    expect_launched("backward", backward(shape,
                                         {q.memory.get(), k.memory.get(), v.memory.get(), output.memory.get(),
                                          given_lse.get(), d_o.memory.get(), d.get(), dq.get(), dk.get(),
                                          dv.get(), dq_acc.get()},
                                         causal, {}));
    const auto gradients = reference::backward(problem, q.values, k.values, v.values, d_o.values);
    compare("dq" + suffix, Bf16Tensor::widened(dq.read<std::uint16_t>()), gradients.dq, gradient_tolerance);
    compare("dk" + suffix, Bf16Tensor::widened(dk.read<std::uint16_t>()), gradients.dk, gradient_tolerance);
    compare("dv" + suffix, Bf16Tensor::widened(dv.read<std::uint16_t>()), gradients.dv, gradient_tolerance);
}

} // namespace

int main() {
    try {
        run(false);
        run(true);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "check: %s\n", error.what());
        return 1;
    }
    return passed ? 0 : 1;
}
