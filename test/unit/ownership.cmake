weir_test(NAME ownership_owner_test LABEL unit SOURCES ownership_owner_test.cc DEPS ownership)
