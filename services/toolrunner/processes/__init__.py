"""Processes of workspaces: started, monitored, waited for, ended."""
