/// Arguments that a bound function cannot make sense of. nanobind says then which C++ types it takes;
/// `longshore._mistakes` says which argument it is, what was given and what is wanted.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nanobind/nanobind.h>

namespace longshore::python {

namespace {

/// The few ways in which nanobind calls functions, by how many arguments they take. Set when the module is loaded.
std::array<vectorcallfunc, 8> ways_to_call{};

bool is_method(PyObject* thing) { return std::string_view(Py_TYPE(thing)->tp_name).ends_with("nb_method"); }

bool is_function(PyObject* thing) {
  return (is_method(thing) || std::string_view(Py_TYPE(thing)->tp_name).ends_with("nb_func")) &&
         Py_TYPE(thing)->tp_vectorcall_offset > 0;
}

/// Puts an error of ours in the place of nanobind's, where one is found.
void explain(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  nanobind::python_error raised;
  try {
    const nanobind::str words(raised.value());
    if (std::string_view(words.c_str()).find("(): incompatible function arguments") != std::string_view::npos) {
      nanobind::list positional;
      nanobind::dict named;
      // A method's first argument is the object, which is not there yet where it is being made.
      for (std::size_t i = is_method(function); i < count; ++i) positional.append(nanobind::handle(arguments[i]));
      for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i)
        named[nanobind::handle(PyTuple_GET_ITEM(names, i))] = nanobind::handle(arguments[count + std::size_t(i)]);
      const auto told = nanobind::module_::import_("longshore._mistakes")
                            .attr("explain")(nanobind::handle(function), positional, named);
      if (!told.is_none()) return PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told.ptr())), told.ptr());
    }
  } catch (const std::exception&) {  // nanobind's words are better than none
  }
  raised.restore();
}

template <std::size_t way>
PyObject* call(PyObject* function, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  PyObject* const result = ways_to_call[way](function, arguments, flags, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError))
    explain(function, arguments, flags & 0xffff, names);  // in the higher bits are flags, nanobind's own among them
  return result;
}

template <std::size_t... way>
constexpr std::array<vectorcallfunc, sizeof...(way)> calls(std::index_sequence<way...>) {
  return {call<way>...};
}

void teach(PyObject* function) {
  if (!is_function(function)) return;
  constexpr auto ours = calls(std::make_index_sequence<ways_to_call.size()>());
  auto& its =
      *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) + Py_TYPE(function)->tp_vectorcall_offset);
  if (std::find(ours.begin(), ours.end(), its) != ours.end()) return;
  for (std::size_t way = 0; way < ours.size(); ++way) {
    if (ways_to_call[way] != nullptr && ways_to_call[way] != its) continue;
    ways_to_call[way] = its;
    its = ours[way];
    return;
  }
}

/// Every function in a module's or a class's dictionary, and in those of its classes.
void teach_all(nanobind::handle names) {
  for (const auto thing : nanobind::list(names.attr("values")())) {
    teach(thing.ptr());
    if (PyType_Check(thing.ptr())) teach_all(thing.attr("__dict__"));
    if (nanobind::hasattr(thing, "fset")) teach(nanobind::object(thing.attr("fset")).ptr());
  }
}

}  // namespace

/// `_core` calls this once, behind all that it binds.
inline void tell_mistakes(nanobind::module_& module) { teach_all(module.attr("__dict__")); }

}  // namespace longshore::python
