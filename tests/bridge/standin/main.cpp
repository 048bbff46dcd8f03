// The C++ side of test_bridges.py: one scenario a process.
#include "standin.hpp"

#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace {

template <class Call> void report(Call call) {
    try {
        call();
        std::puts("ok");
    } catch (const standin::Unavailable &error) {
        std::printf("Unavailable: %s\n", error.what());
    } catch (const standin::PreconditionError &error) {
        std::printf("PreconditionError: %s\n", error.what());
    } catch (const standin::StatusError &error) {
        std::printf("StatusError: %s\n", error.what());
    }
}

void sum(char **argument) {
    const float data[] = {1, 2, 3, 4};
    const standin_job job{2, 0.5, data, {1, 2, 3}, {0, 100}};
    float results[2] = {};
    auto *result = reinterpret_cast<float *>(reinterpret_cast<char *>(results) + std::stoi(argument[1]));
    report([&] {
        standin::sum(argument[0] == std::string("null") ? nullptr : &job, result, std::stoull(argument[2]),
                     std::stof(argument[3]), argument[4] == std::string("1"), nullptr);
    });
    std::printf("%g\n", results[0]);
}

void threads() {
    std::vector<std::thread> all;
    std::atomic<int> usable{0};
    for (int i = 0; i < 16; ++i)
        all.emplace_back([&] { usable += standin::available(); });
    for (auto &thread : all)
        thread.join();
    std::printf("%d %lld\n", usable.load(), static_cast<long long>(standin::loads()));
}

} // namespace

int main(int, char **argv) {
    const std::string scenario = argv[1];
    if (scenario == "available") {
        for (int i = 0; i < 3; ++i)
            std::printf("%s %s\n", standin::available() ? "true" : "false",
                        standin::available() ? "-" : standin::unavailable_reason().c_str());
    } else if (scenario == "sum") {
        sum(argv + 2);
    } else if (scenario == "fail") {
        report([&] { standin::fail(std::stoi(argv[2])); });
    } else if (scenario == "threads") {
        threads();
    } else if (scenario == "reset") {
        standin::reset(static_cast<std::uint16_t>(std::stoi(argv[2])));
        std::printf("%lld\n", static_cast<long long>(standin::loads()));
    } else {
        return 2;
    }
}
