/// What ranks of a world and members of a communicator call alike. `me` is a rank of the world, roots are the group's.
#pragma once

#include "engines/finegrain/world.hpp"

namespace longshore::finegrain {

/// Throws `Error(argument)` for negative tags.
Channel channel(const Group& group, Index tag);
/// `what`: " to gather at", or nothing.
[[noreturn]] void refuse_member(Index member, const Group& group, const char* what);

void collective_barrier(World& world, Group& group, Index me);
void collective_gather(World& world, Group& group, Index me, Index root, std::span<const std::byte> mine,
                       std::span<std::byte> all);
void collective_all_gather(World& world, Group& group, Index me, std::span<const std::byte> mine,
                           std::span<std::byte> all);
void collective_broadcast(World& world, Group& group, Index me, Index root, std::span<std::byte> message);
void collective_all_reduce(World& world, Group& group, Index me, std::span<std::byte> numbers,
                           const Reduction& reduction);

}  // namespace longshore::finegrain
