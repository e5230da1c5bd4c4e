"""Pages in the browser, on this machine only: for analysts (`serve`), for curators (`studio`)."""
