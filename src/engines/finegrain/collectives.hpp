/// What ranks of a world and members of a communicator call alike. `me` is a rank of the world, roots are the circle's.
#pragma once

#include "engines/finegrain/world.hpp"

namespace longshore::finegrain {

/// Throws `Error(argument)` for negative tags.
Channel channel(const Circle& circle, Index tag);
/// `what`: " to gather at", or nothing.
[[noreturn]] void refuse_member(Index member, const Circle& circle, const char* what);

void meet_at_barrier(World& world, Circle& circle, Index me);
void meet_to_gather(World& world, Circle& circle, Index me, Index root, std::span<const std::byte> mine,
                    std::span<std::byte> all);
void meet_to_all_gather(World& world, Circle& circle, Index me, std::span<const std::byte> mine,
                        std::span<std::byte> all);
void meet_to_broadcast(World& world, Circle& circle, Index me, Index root, std::span<std::byte> message);
void meet_to_all_reduce(World& world, Circle& circle, Index me, std::span<std::byte> numbers,
                        const Reduction& reduction);

}  // namespace longshore::finegrain
