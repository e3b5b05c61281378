"""PAI-DLC (version 2020-12-03), as Alibaba's SDK calls it."""
