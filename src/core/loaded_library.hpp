/// A library that is looked for when it is first wanted, so that nothing else depends on it.
#pragma once

namespace longshore {

class LoadedLibrary {
 public:
  /// `needed_by`, as "the representation bdd", needs `file`, which `package` of Debian has.
  LoadedLibrary(const char* file, const char* needed_by, const char* package);
  /// Throws `Error(argument)` where the library or the function is not there. Once loaded, it stays.
  template <class Function>
  void find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;
  void* handle_;
  const char *file_, *needed_by_, *package_;
};

}  // namespace longshore
