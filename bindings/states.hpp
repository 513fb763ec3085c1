/// Values that are pickled and copied as the tuple of all that tells them. What comes back may be anything: each entry
/// is looked at before a value is made of it.
#pragma once

#include <string>

#include "rooms.hpp"

namespace longshore::python {

/// Such a tuple.
class State {
 public:
  /// Throws `Error(argument)` unless it has so many entries.
  State(const nb::handle& type, nb::tuple entries, std::size_t wanted) : type_(type), entries_(std::move(entries)) {
    if (entries_.size() != wanted)
      refuse("has " + std::to_string(entries_.size()) + " entries, not " + std::to_string(wanted));
  }

  /// One of them. Throws `Error(argument)` where it is of another type.
  template <class T>
  T at(std::size_t k) const {
    const nb::handle entry = entries_[k];
    try {
      return nb::cast<T>(entry);
    } catch (const std::exception&) {
      refuse("has an entry " + std::to_string(k) + " that cannot be there, of type " +
             nb::cast<std::string>(entry.type().attr("__name__")));
    }
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::argument, "the state of a " + nb::cast<std::string>(type_.attr("__name__")) + " " + why +
                                         ": it must be what __getstate__ gives");
  }

 private:
  nb::handle type_;
  nb::tuple entries_;
};

/// `state_of` gives a value's tuple of so many entries, and `made_of` makes a value of a `State`.
template <class T, class StateOf, class MadeOf>
nb::class_<T> def_state(nb::class_<T> type, std::size_t entries, StateOf state_of, MadeOf made_of) {
  type.def("__getstate__", [state_of](const T& self) -> nb::tuple { return state_of(self); });
  type.def("__setstate__", [entries, made_of](T& self, nb::tuple state) {
    new (&self) T(made_of(State(nb::type<T>(), std::move(state), entries)));
  });
  return type;
}

/// Of a value that is what these members are, where `check` has nothing against them.
template <class T, class Check, class... Members>
nb::class_<T> def_state(nb::class_<T> type, Check check, Members T::*... members) {
  return def_state(
      type, sizeof...(Members), [members...](const T& self) { return nb::make_tuple(self.*members...); },
      [check, members...](const State& state) {
        T made;
        std::size_t k = 0;
        ((made.*members = state.at<Members>(k++)), ...);
        check(made);
        return made;
      });
}

/// A `check` for members that may be anything.
constexpr auto anything = [](const auto&) {};

}  // namespace longshore::python
