// Calls kernels of every kind of signature through lazy stubs: cold, warm, from many threads, failing and
// throwing.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef __x86_64__
#include <emmintrin.h>
using Vector = __m128i;
#else
#include <arm_neon.h>
using Vector = int64x2_t;
#endif

struct Big {
    std::array<long, 40> numbers;
};

struct Pair {
    double first;
    long second;
};

// What CK would declare: the stubs define them.
__attribute__((visibility("hidden"))) double stub_mixed(int, long, const void *, short, long, int, long, long,
                                                        double, float, double, double, double, double, double,
                                                        double, double, Big, long) __asm__("stub_mixed");
__attribute__((visibility("hidden"))) std::string stub_string(Big, int) __asm__("stub_string");
__attribute__((visibility("hidden"))) Big stub_big(int, double) __asm__("stub_big");
__attribute__((visibility("hidden"))) Pair stub_pair(Pair, Vector) __asm__("stub_pair");
__attribute__((visibility("hidden"))) float stub_throws(int) __asm__("stub_throws");

namespace {

double mixed(int a, long b, const void *c, short d, long e, int f, long g, long h, double i, float j,
             double k, double l, double m, double n, double o, double p, double q, Big r, long s) {
    double sum = a + 2. * b + 3. * d + 4. * e + 5. * f + 6. * g + 7. * h + 8. * i + 9. * j + 10. * k +
                 11. * l + 12. * m + 13. * n + 14. * o + 15. * p + 16. * q + 17. * s +
                 static_cast<double>(reinterpret_cast<std::uintptr_t>(c));
    for (long number : r.numbers)
        sum += 18. * number;
    return sum;
}

std::string string(Big b, int n) {
    return std::to_string(b.numbers[39]) + std::string(static_cast<std::size_t>(n), '!');
}

Big big(int n, double d) {
    Big result{};
    result.numbers[3] = n + static_cast<long>(d);
    return result;
}

Pair pair(Pair p, Vector v) {
    long lanes[2];
    __builtin_memcpy(lanes, &v, sizeof lanes);
    return {p.first + static_cast<double>(lanes[0]), p.second + lanes[1]};
}

float throws(int n) { throw std::runtime_error("thrown " + std::to_string(n)); }

template <typename Function> void *address(Function *function) { return reinterpret_cast<void *>(function); }

void *const kTable[] = {address(mixed), address(string), address(big), address(pair), address(throws)};
std::atomic<int> resolved{0};
std::atomic<bool> fails{false};

} // namespace

namespace ck_jit {
struct Slot {
    std::atomic<void *const *> kernels{nullptr};
};
__attribute__((visibility("hidden"))) Slot slots[6];
} // namespace ck_jit

// As a resolve may: overwrites every register that a call need not keep.
extern "C" __attribute__((visibility("hidden"))) void *const *ck_jit_stub_kernels(ck_jit::Slot *slot) {
#ifdef __x86_64__
    __asm__ volatile(
        "movq $-1, %%rax; movq %%rax, %%rcx; movq %%rax, %%rdx; movq %%rax, %%rsi; movq %%rax, %%r8;"
        "movq %%rax, %%r9; movq %%rax, %%r10; movq %%rax, %%r11; pcmpeqd %%xmm0, %%xmm0;"
        "movaps %%xmm0, %%xmm1; movaps %%xmm0, %%xmm2; movaps %%xmm0, %%xmm3; movaps %%xmm0, %%xmm4;"
        "movaps %%xmm0, %%xmm5; movaps %%xmm0, %%xmm6; movaps %%xmm0, %%xmm7" ::
            : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
              "xmm5", "xmm6", "xmm7");
#else
    __asm__ volatile(
        "mov x1, #-1; mov x2, x1; mov x3, x1; mov x4, x1; mov x5, x1; mov x6, x1; mov x7, x1; mov x8, x1;"
        "mov x9, x1; mov x16, x1; mov x17, x1; dup v0.2d, x1; dup v1.2d, x1; dup v2.2d, x1; dup v3.2d, x1;"
        "dup v4.2d, x1; dup v5.2d, x1; dup v6.2d, x1; dup v7.2d, x1" ::
            : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x16", "x17", "v0", "v1", "v2", "v3",
              "v4", "v5", "v6", "v7");
#endif
    if (fails)
        return nullptr;
    ++resolved;
    slot->kernels.store(kTable, std::memory_order_release);
    return kTable;
}

// As the generated glue has them: with the result's type and no parameters.
double failed_mixed() noexcept __asm__("ck_jit_stub_failed_0");
double failed_mixed() noexcept { return -1; }
std::string failed_string() noexcept __asm__("ck_jit_stub_failed_1");
std::string failed_string() noexcept { return {}; }
Big failed_big() noexcept __asm__("ck_jit_stub_failed_2");
Big failed_big() noexcept { return {}; }
Pair failed_pair() noexcept __asm__("ck_jit_stub_failed_3");
Pair failed_pair() noexcept { return {}; }
float failed_throws() noexcept __asm__("ck_jit_stub_failed_4");
float failed_throws() noexcept { return -1; }

namespace {

void require(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "wrong: %s\n", what);
        std::exit(1);
    }
}

Big filled(long first) {
    Big result;
    for (long &number : result.numbers)
        number = first++;
    return result;
}

template <typename Function> double call_mixed(Function function) {
    return function(1, -2, reinterpret_cast<const void *>(0x12345), 3, 1L << 40, -5, 6, 7, 1.5, 2.5f, 3.5,
                    4.5, 5.5, 6.5, 7.5, 8.5, 9.5, filled(100), -77);
}

Vector vector(long a, long b) {
    const long lanes[2] = {a, b};
    Vector result;
    __builtin_memcpy(&result, lanes, sizeof result);
    return result;
}

void call_all() {
    require(call_mixed(stub_mixed) == call_mixed(mixed), "mixed arguments");
    require(stub_string(filled(2), 30) == "41" + std::string(30, '!'), "a string");
    require(stub_big(40, 2.5).numbers[3] == 42, "a struct in memory");
    const Pair found = stub_pair({1.5, 2}, vector(10, 20));
    require(found.first == 11.5 && found.second == 22, "a struct in registers");
    try {
        stub_throws(5);
        require(false, "no exception");
    } catch (const std::runtime_error &error) {
        require(std::string(error.what()) == "thrown 5", "the exception");
    }
}

void call_failing() {
    require(call_mixed(stub_mixed) == -1, "a failed double");
    require(stub_string(filled(2), 30).empty(), "a failed string");
    require(stub_big(40, 2.5).numbers[3] == 0, "a failed struct");
    require(stub_pair({1.5, 2}, vector(1, 2)).second == 0, "a failed pair");
    require(stub_throws(5) == -1, "a failed float");
}

} // namespace

int main() {
    fails = true;
    call_failing();
    fails = false;
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number)
        threads.emplace_back(call_all);
    for (std::thread &thread : threads)
        thread.join();
    const int cold = resolved;
    require(cold >= 5, "the stubs resolved nothing");
    call_all();
    require(resolved == cold, "a warm stub resolved again");
    std::puts("as called directly");
}
