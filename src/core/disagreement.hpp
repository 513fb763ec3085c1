/// One error of all ranks, from what each of them has to say.
#pragma once

#include <functional>
#include <string>

#include "longshore/core/checked.hpp"
#include "longshore/core/facts.hpp"

namespace longshore {

/// What a rank brings to a comparison, in words; nothing where it has nothing to say.
using TextOf = std::function<std::string(Index rank)>;

/// The fact that tells whether two values differ, where all others may be the same.
inline constexpr const char* digest_fact = "digest";
/// Facts as a text that can be brought.
std::string facts_text(const Facts& facts);
/// Throws `Error(disagreement)` that says which facts differ between ranks, and how: of a name, the first that does.
/// The texts are of facts.
[[noreturn]] void throw_disagreement(Index ranks, const TextOf& text_of);
/// An error as a text that can be brought, and the error of all that such texts make: of the kind of the first.
std::string failure_text(const Error& error);
[[noreturn]] void throw_failures(Index ranks, const TextOf& text_of);

}  // namespace longshore
