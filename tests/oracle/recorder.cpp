#include "recorder.h"

#include <new>
#include <unordered_map>

namespace oracle {

std::vector<int> &calls() {
    static std::vector<int> made;
    return made;
}

int number_of(const std::string &symbol) {
    static const std::unordered_map<std::string, int> numbers = [] {
        std::unordered_map<std::string, int> found;
        for (int i = 0; i < symbol_count; ++i)
            found.emplace(symbols[i], i);
        return found;
    }();
    const auto place = numbers.find(symbol);
    return place == numbers.end() ? -1 : place->second;
}

} // namespace oracle

// The generated stubs jump here, one function for each kind of result. A std::string is returned where the
// caller says in its first argument, so the number is the second.
extern "C" {
void oracle_void(int number) { oracle::calls().push_back(number); }
float oracle_float(int number) {
    oracle_void(number);
    return static_cast<float>(number) + 0.5F;
}
double oracle_double(int number) {
    oracle_void(number);
    return number + 0.5;
}
long oracle_integer(int number) {
    oracle_void(number);
    return number;
}
bool oracle_bool(int number) {
    oracle_void(number);
    return number % 2 != 0;
}
void *oracle_text(void *result, int number) {
    oracle_void(number);
    return new (result) std::string("kernel " + std::to_string(number));
}
}
