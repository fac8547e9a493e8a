weir_test(NAME regions_placement_test LABEL unit SOURCES regions_placement_test.cc DEPS regions)
