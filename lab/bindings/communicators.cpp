#include <nanobind/stl/vector.h>

#include <algorithm>

#include "communicators.hpp"
#include "questions.hpp"

namespace longshore::bench {

void bind_communicators_bench(nb::module_& module) {
  const auto members = nb::arg("members");
  module.def(
      "rank_array_map",
      [](const Numbers& list, Index world) {
        check_questions(list, world, 1);
        return array_map(of(list), world);
      },
      members, nb::arg("world"),
      "The map of a plain array, filled as an MPI library fills its own; members are to be distinct.");
  module.def(
      "communicator_seconds",
      [](const Numbers& list, const std::vector<RankMap>& maps, const std::vector<Index>& repeats,
         const Numbers& senders, const Numbers& receivers, Index gathers) {
        if (maps.empty() || maps.size() != repeats.size() || *std::min_element(repeats.begin(), repeats.end()) < 1)
          throw Error(ErrorKind::argument,
                      "each map, of which there is at least one, needs a number of repeats of at least 1");
        if (senders.size() != receivers.size())
          throw Error(ErrorKind::argument, "there are " + std::to_string(senders.size()) + " senders and " +
                                               std::to_string(receivers.size()) +
                                               " receivers; every message has one of each");
        for (const auto* numbers : {&senders, &receivers}) check_questions(*numbers, Index(list.size()), 1);
        check_questions(list, maps[0].world(), 1);
        for (const auto& map : maps)
          if (map.size() != Index(list.size()))
            throw Error(ErrorKind::argument,
                        "a map of " + std::to_string(map.size()) + " members for " + std::to_string(list.size()));
        std::vector<std::vector<CommunicatorSeconds>> seconds;
        {
          const nb::gil_scoped_release release;
          seconds = communicator_seconds(of(list), maps, repeats, {of(senders), of(receivers), gathers});
        }
        nb::list told;
        for (const auto& rounds : seconds) {
          nb::list create, messages, gather;
          for (const auto& round : rounds)
            create.append(round.create), messages.append(round.messages), gather.append(round.gathers);
          nb::dict one;
          one["create"] = create, one["messages"] = messages, one["gathers"] = gather;
          told.append(one);
        }
        return told;
      },
      members, nb::arg("maps"), nb::arg("repeats"), nb::arg("senders"), nb::arg("receivers"), nb::arg("gathers"),
      "Seconds that creating, sending and gathering take in a world of fibers, for a communicator of these members in "
      "each map.");
}

}  // namespace longshore::bench
