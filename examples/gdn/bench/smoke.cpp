// Calls the library through the generated C++ bridge and compares with the recurrence in double on the CPU.
//     smoke_cpp TOKENS NK NV SLOTS
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gdn.hpp"

namespace {

constexpr int kDim = 128;

void check(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
    std::exit(3);
}

double uniform() { // the same numbers on every machine
    static unsigned long long state = 1;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return double(state >> 40) / double(1 << 24);
}

unsigned short to_bf16(float value) { // cut off: the reference reads the same bits
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<unsigned short>(bits >> 16);
}

float from_bf16(unsigned short half) {
    const unsigned bits = unsigned(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> T *on_device(const std::vector<T> &host) {
    void *pointer = nullptr;
    check(cudaMalloc(&pointer, host.size() * sizeof(T)));
    check(cudaMemcpy(pointer, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return static_cast<T *>(pointer);
}

struct Problem {
    int tokens, nk, nv, conv_dim, gb_stride;
    float scale = 0.0883883f;
    std::vector<unsigned short> qkv;
    std::vector<float> gate_beta, state;
};

Problem make(int tokens, int nk, int nv) {
    Problem p{tokens, nk, nv, (2 * nk + nv) * kDim + 8, 2 * nv + 1, 0.0883883f, {}, {}, {}};
    for (int i = 0; i < tokens * p.conv_dim; ++i) {
        const bool key = i % p.conv_dim < 2 * nk * kDim;
        p.qkv.push_back(to_bf16(float((uniform() - 0.5) * (key ? 0.3 : 2))));
    }
    for (int i = 0; i < tokens * p.gb_stride; ++i)
        p.gate_beta.push_back(float(i % p.gb_stride < nv ? 1 - 0.05 * uniform() : uniform()));
    for (int i = 0; i < nv * kDim * kDim; ++i)
        p.state.push_back(float(0.2 * (uniform() - 0.5)));
    return p;
}

// Updates p.state and returns the outputs.
std::vector<double> reference(Problem &p) {
    std::vector<double> output(size_t(p.tokens) * p.nv * kDim);
    std::vector<double> state(p.state.begin(), p.state.end());
    for (int t = 0; t < p.tokens; ++t)
        for (int h = 0; h < p.nv; ++h) {
            const auto *row = &p.qkv[size_t(t) * p.conv_dim];
            const int key_head = h / (p.nv / p.nk) * kDim;
            double *s = &state[size_t(h) * kDim * kDim];
            const double alpha = p.gate_beta[size_t(t) * p.gb_stride + h];
            const double beta = p.gate_beta[size_t(t) * p.gb_stride + p.nv + h];
            double known[kDim] = {}, result[kDim] = {};
            for (int i = 0; i < kDim; ++i)
                for (int j = 0; j < kDim; ++j)
                    known[j] += (s[i * kDim + j] *= alpha) * from_bf16(row[p.nk * kDim + key_head + i]);
            for (int i = 0; i < kDim; ++i)
                for (int j = 0; j < kDim; ++j) {
                    const double v = from_bf16(row[(2 * p.nk + h) * kDim + j]);
                    s[i * kDim + j] += from_bf16(row[p.nk * kDim + key_head + i]) * beta * (v - known[j]);
                    result[j] += s[i * kDim + j] * from_bf16(row[key_head + i]) * p.scale;
                }
            std::copy(result, result + kDim, &output[(size_t(t) * p.nv + h) * kDim]);
        }
    p.state.assign(state.begin(), state.end());
    return output;
}

template <class A, class B> double relative_rms(const A &value, const B &expected) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        difference += (value[i] - expected[i]) * (value[i] - expected[i]);
        size += double(expected[i]) * expected[i];
    }
    return std::sqrt(difference / size);
}

} // namespace

int main(int, char **argv) {
    if (!gdn::available()) {
        std::fprintf(stderr, "%s\n", gdn::unavailable_reason().c_str());
        return 2;
    }
    Problem p = make(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
    auto *qkv = on_device(p.qkv);
    auto *gate_beta = on_device(p.gate_beta);
    auto *state = on_device(p.state);
    auto *output = on_device(std::vector<unsigned short>(size_t(p.tokens) * p.nv * kDim));
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    gdn::limit_slots(std::atoi(argv[4]));
    gdn::prefill(qkv, gate_beta, output, state, p.scale, p.tokens, p.nk, p.nv, kDim, kDim, p.conv_dim,
                 p.gb_stride, 1, stream);
    check(cudaStreamSynchronize(stream));

    std::vector<unsigned short> raw(size_t(p.tokens) * p.nv * kDim);
    std::vector<float> got_state(p.state.size());
    check(cudaMemcpy(raw.data(), output, raw.size() * sizeof(raw[0]), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(got_state.data(), state, got_state.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const auto expected = reference(p);
    std::vector<float> got(raw.size());
    for (size_t i = 0; i < raw.size(); ++i)
        got[i] = from_bf16(raw[i]);
    const double errors[] = {relative_rms(got, expected), relative_rms(got_state, p.state)};
    std::printf("relative RMS: output %.2e, state %.2e\n", errors[0], errors[1]);
    return errors[0] < 1e-2 && errors[1] < 1e-2 ? 0 : 1;
}
