"""Users and groups as the gateway knows them."""
