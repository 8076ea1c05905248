"""Pages: one file each, which ask nothing of any network.

page       the frame: head, policy, style, script; how text gets into a page
svg        plots
embedded   a report inside of its page, as JSON; written and read
panels     what a report shows
report  diff   the pages
"""
