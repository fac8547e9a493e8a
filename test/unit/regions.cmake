weir_test(NAME regions_placement_test LABEL unit SOURCES regions_placement_test.cc DEPS regions)
weir_test(NAME regions_plan_test LABEL unit SOURCES regions_plan_test.cc DEPS regions)
weir_test(NAME regions_relay_test LABEL unit SOURCES regions_relay_test.cc DEPS regions)
