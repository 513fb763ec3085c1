/// Longshore's errors as Python exceptions: the classes live in longshore.errors, one a kind.
#pragma once

#include <nanobind/nanobind.h>

#include "longshore/core/error.hpp"

namespace longshore::python {

inline const char* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument: return "ArgumentError";
    case ErrorKind::layout: return "LayoutError";
    case ErrorKind::shape: return "ShapeError";
    case ErrorKind::type: return "DTypeError";
    case ErrorKind::buffer: return "LocalArrayError";
    case ErrorKind::memory_limit: return "MemoryLimitError";
    case ErrorKind::overflow: return "SizeOverflowError";
    case ErrorKind::disagreement: return "DisagreementError";
    case ErrorKind::transport: return "TransportError";
    case ErrorKind::deadlock: return "DeadlockError";
  }
  return "LongshoreError";
}

/// Every extension module calls this once, in its own body.
inline void register_errors() {
  nanobind::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const Error& error) {
          const auto module = nanobind::module_::import_("longshore.errors");
          PyErr_SetString(nanobind::object(module.attr(class_of(error.kind()))).ptr(), error.what());
        }
      },
      nullptr);
}

}  // namespace longshore::python
