# Thin on purpose: each target is a script that can be read and run by itself.
.PHONY: run test check

run: ## Set everything up and run Parley in the foreground
	@scripts/run

test: export TESTS_END_WITH_PARENT = 1
test: ## Set everything up, run all checks and all tests
	@scripts/test

check: ## Run all checks without the tests
	@scripts/check
