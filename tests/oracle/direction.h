// What the driver needs of a direction; generated from the syntax tree of its API file.
#pragma once

#include <string>
#include <type_traits>

namespace oracle {

class Input {
  public:
    virtual ~Input() = default;
    virtual void clear() = 0;
    virtual void set(int field, double number, const std::string &text) = 0;
    virtual double call(void *function) const = 0;
};

Input *make_input();
const char *function_symbol();

template <typename Field> void assign(Field &field, double number, const std::string &text) {
    if constexpr (std::is_same_v<Field, std::string>)
        field = text;
    else if constexpr (std::is_pointer_v<Field>)
        field = reinterpret_cast<Field>(static_cast<long>(number));
    else if constexpr (std::is_enum_v<Field>)
        field = static_cast<Field>(static_cast<long>(number));
    else
        field = static_cast<Field>(number);
}

} // namespace oracle
