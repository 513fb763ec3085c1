/// One error of all ranks, from what each of them has to say.
#pragma once

#include <functional>
#include <string>

#include "longshore/core/checked.hpp"

namespace longshore {

/// What a rank brings to a comparison, in words; nothing where it has nothing to say.
using TextOf = std::function<std::string(Index rank)>;

/// Throws `Error(disagreement)` with everybody's text, ranks of one text together.
[[noreturn]] void throw_disagreement(Index ranks, const TextOf& text_of);
/// An error as a text that can be brought, and the error of all that such texts make: of the kind of the first.
std::string failure_text(const Error& error);
[[noreturn]] void throw_failures(Index ranks, const TextOf& text_of);

}  // namespace longshore
